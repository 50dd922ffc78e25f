//! How far a grant reaches at its site.

stored_words! {
    /// What a grant allows at its site, as a second limit besides the role: each level includes those before it.
    pub enum SiteLevel {
        Read = "read",
        Write = "write",
        Admin = "admin",
        /// The same as `admin`.
        Full = "full",
    }
}

impl SiteLevel {
    /// Whether a grant of this level allows what needs `other`.
    pub const fn includes(self, other: SiteLevel) -> bool {
        self.rank() >= other.rank()
    }

    const fn rank(self) -> u8 {
        match self {
            SiteLevel::Read => 0,
            SiteLevel::Write => 1,
            SiteLevel::Admin | SiteLevel::Full => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SiteLevel::{Admin, Full, Read, Write};

    #[test]
    fn a_level_includes_those_before_it_and_the_two_highest_are_one() {
        for (level, included) in [
            (Read, &[Read][..]),
            (Write, &[Read, Write]),
            (Admin, &[Read, Write, Admin, Full]),
            (Full, &[Read, Write, Admin, Full]),
        ] {
            for other in [Read, Write, Admin, Full] {
                assert_eq!(level.includes(other), included.contains(&other), "{level} {other}");
            }
        }
    }
}
