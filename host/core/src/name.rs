//! Names: in which form they are compared, and what they may not hold.
//!
//! Every comparison of a login name or an email address goes through [`fold`], so that both databases, the limits and the
//! directories agree on who is the same.

use icu_properties::CodePointMapData;
use icu_properties::props::Script;
use unicase::UniCase;
use unicode_normalization::UnicodeNormalization as _;

/// Foldings after which a text no longer changes; a test tries every character.
const FOLDINGS: usize = 2;
/// Longest text that is folded; a longer one is no name.
const BYTES_MAX: usize = 1_024;

/// The form in which names are compared: compatibility characters as their plain ones (NFKC), without case.
///
/// `STRASSE` and `straße`, `ÉVE` and `éve` (with one or with two code points) are the same. Of a text longer than 1,024
/// bytes only the case is folded, so that no caller can make the service compose megabytes.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    if text.len() > BYTES_MAX {
        return text.to_lowercase();
    }
    let mut folded = normalize(text);
    for _ in 0..FOLDINGS {
        folded = normalize(&UniCase::unicode(folded.as_str()).to_folded_case());
    }
    folded
}

/// The text with compatibility characters as their plain ones, and composed (NFKC): the form in which login names are kept.
pub fn normalize(text: &str) -> String {
    text.nfkc().collect()
}

/// Whether a name would hold something that people do not see, or that moves what they see.
pub fn has_hidden(text: &str) -> bool {
    text.chars().any(is_hidden)
}

/// The text without what [`has_hidden`] finds.
pub fn without_hidden(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

/// Control characters, direction marks, characters without width, line separators, and letters that are blank.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{00AD}'
                | '\u{034F}'
                | '\u{061C}'
                | '\u{115F}'
                | '\u{1160}'
                | '\u{17B4}'
                | '\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF0}'..='\u{FFFB}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E0FFF}'
        )
}

/// Two scripts of a text whose letters look alike; `None` when it keeps to one.
///
/// Latin letters may be mixed with those of Chinese, Japanese and Korean, as is usual there (the "highly restrictive"
/// level of Unicode Technical Standard 39).
pub fn mixed_scripts(text: &str) -> Option<(&'static str, &'static str)> {
    let scripts = CodePointMapData::<Script>::new();
    let mut first = None;
    for c in text.chars() {
        let script = scripts.get(c);
        if [Script::Common, Script::Inherited, Script::Unknown].contains(&script) {
            continue;
        }
        match first {
            None => first = Some(script),
            Some(known) if known == script || stands_beside(known, script) => {}
            Some(known) => return Some((script_name(known), script_name(script))),
        }
    }
    None
}

fn stands_beside(one: Script, two: Script) -> bool {
    let east_asian = |script: Script| {
        [Script::Han, Script::Hiragana, Script::Katakana, Script::Hangul, Script::Bopomofo].contains(&script)
    };
    let may = |script: Script| script == Script::Latin || east_asian(script);
    may(one) && may(two)
}

fn script_name(script: Script) -> &'static str {
    match script {
        Script::Latin => "Latin",
        Script::Cyrillic => "Cyrillic",
        Script::Greek => "Greek",
        Script::Armenian => "Armenian",
        Script::Cherokee => "Cherokee",
        Script::Hebrew => "Hebrew",
        Script::Arabic => "Arabic",
        Script::Han => "Chinese",
        Script::Hiragana | Script::Katakana => "Japanese",
        Script::Hangul => "Korean",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_same(names: &[&str]) {
        let folded: Vec<String> = names.iter().map(|name| fold(name)).collect();
        assert!(folded.iter().all(|name| *name == folded[0]), "{names:?}: {folded:?}");
    }

    #[test]
    fn case_and_composition_make_no_other_name() {
        check_same(&["ada", "ADA", "Ada", "ａｄａ", "ＡＤＡ"]);
        check_same(&["éve", "ÉVE", "e\u{301}ve", "E\u{301}VE"]);
        check_same(&["straße", "STRASSE", "STRAẞE", "strasse"]);
        check_same(&["σίσυφος", "ΣΊΣΥΦΟΣ"]);
        check_same(&["ﬁnn", "FINN"]);
        check_same(&["ķ@example.org", "K\u{327}@EXAMPLE.ORG"]);
        assert_ne!(fold("eve"), fold("éve"));
        assert_ne!(fold("ada"), fold("аdа"), "Cyrillic letters are others");
    }

    #[test]
    fn folding_a_folded_character_changes_nothing() {
        for c in (0..=0x0010_FFFF).filter_map(char::from_u32) {
            let once = fold(&c.to_string());
            assert_eq!(fold(&once), once, "{:x}", u32::from(c));
            let marked = fold(&format!("a{c}\u{345}\u{301}"));
            assert_eq!(fold(&marked), marked, "{:x} with marks", u32::from(c));
        }
    }

    #[test]
    fn what_cannot_be_seen_is_found() {
        for hidden in ["a\u{202e}b", "a\u{200b}", "\u{feff}a", "a\u{2066}b", "a\nb", "\u{3164}", "a\u{e0041}"]
        {
            assert!(has_hidden(hidden), "{hidden:?}");
            assert!(!has_hidden(&without_hidden(hidden)));
        }
        for plain in ["Zürich – Büro 3", "東京", "Київ", "مكتب", "👍🏽", "office (2nd floor)"]
        {
            assert!(!has_hidden(plain), "{plain:?}");
        }
    }

    #[test]
    fn letters_of_scripts_that_look_alike_are_not_mixed() {
        for mixed in ["раypal", "аda", "αda", "adaΑ", "ада-ada", "Ꭺda", "東ада"] {
            assert!(mixed_scripts(mixed).is_some(), "{mixed}");
        }
        assert_eq!(mixed_scripts("adа"), Some(("Latin", "Cyrillic")));
        for pure in
            ["ada", "ада", "Éve.1", "jörg-2", "ελένη", "山田taro", "ヤマダさん山田", "김ada", "12-3._", ""]
        {
            assert_eq!(mixed_scripts(pure), None, "{pure}");
        }
    }
}
