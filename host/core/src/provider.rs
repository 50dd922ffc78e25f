//! How an identity provider is spoken to.

stored_words! {
    pub enum ProviderKind {
        /// `OpenID` Connect, authorization code with PKCE.
        Oidc = "oidc",
        /// A directory: the password is tried there.
        Ldap = "ldap",
        /// SAML: only the way to the provider; what comes back is not accepted.
        Saml = "saml",
    }
}
