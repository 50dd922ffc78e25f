//! The pages of consent, for browsers with or without scripts.
//!
//! All text is escaped here, and the policy lets a page load nothing at all: the style is inside the page and the
//! policy names its digest. No page can be framed.

use std::sync::LazyLock;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heddle_core::Permission;
use heddle_core::permission::KeyScope;
use heddle_store::oauth2::RegisteredApp;
use sha2::{Digest as _, Sha256};

use super::redirect;

const BASE: &str = "/api/v1/oauth2";

const STYLE: &str = "body{font-family:system-ui,sans-serif;max-width:30rem;margin:3rem auto;padding:0 1rem;\
    line-height:1.5;color:#1b1f24;background:#fff}h1{font-size:1.3rem}label{display:block;margin:.8rem 0}\
    input{display:block;width:100%;box-sizing:border-box;padding:.5rem;font:inherit}button{padding:.5rem 1.2rem;\
    margin:.8rem .6rem 0 0;font:inherit}.fault{border-left:.25rem solid #b3261e;padding-left:.75rem}\
    .note{color:#57606a;font-size:.9rem}code{word-break:break-all}\
    @media(prefers-color-scheme:dark){body{color:#e6e9ec;background:#16191d}.note{color:#a0a8b0}a{color:#8ab4f8}}";

static STYLE_DIGEST: LazyLock<String> = LazyLock::new(|| STANDARD.encode(Sha256::digest(STYLE.as_bytes())));

/// Where a page's forms may lead, redirects included.
#[derive(Debug, Clone, Copy)]
enum Forms<'a> {
    None,
    Here,
    /// Here, and on to the app. Browsers also apply the page's policy to redirects after a form. The app may redirect
    /// its user to an address that is not known here, so the whole scheme is allowed.
    HereAndTo(&'a str),
}

impl Forms<'_> {
    fn policy(self) -> String {
        match self {
            Forms::None => "'none'".to_owned(),
            Forms::Here => "'self'".to_owned(),
            Forms::HereAndTo(scheme) => format!("'self' {scheme}:"),
        }
    }
}

/// Text as HTML shows it, in an element or in a quoted attribute.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn page(status: StatusCode, title: &str, head: &str, body: &str, forms: Forms<'_>) -> Response {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"robots\" content=\"noindex\">\n{head}<title>{title}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n",
        title = escape(title),
    );
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action {}; frame-ancestors 'none'",
        *STYLE_DIGEST,
        forms.policy()
    );
    let mut response = (status, html).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    let policy = HeaderValue::from_str(&policy).expect("a scheme is letters, digits, dots and dashes");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

fn hidden(name: &str, value: &str) -> String {
    format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">\n", escape(value))
}

/// Returns the path of the consent page for a request; `step` says how the browser came there.
pub(super) fn authorize_path(request: &str, step: &str) -> String {
    format!("{BASE}/authorize?{request}&step={step}")
}

/// Returns the short page of a redirect, for clients that do not follow it.
pub(super) fn going_on(status: StatusCode, to: &str) -> Response {
    let body = format!("<p><a href=\"{}\">Continue</a></p>\n", escape(to));
    page(status, "Continue", "", &body, Forms::None)
}

/// Returns a page with an error that cannot be sent to the app.
pub(super) fn fault(status: StatusCode, message: &str) -> Response {
    let body = format!(
        "<p class=\"fault\">{}</p>\n<p class=\"note\">Nothing was allowed. Go back to the app and try again, \
         or tell the people who run it.</p>\n",
        escape(message)
    );
    page(status, "This cannot be authorized", "", &body, Forms::None)
}

/// The same for a user who may be logged in to the wrong account.
pub(super) fn fault_for_user(message: &str, username: &str, request: &str) -> Response {
    let body = format!("<p class=\"fault\">{}</p>\n{}", escape(message), other_user(username, request));
    page(StatusCode::BAD_REQUEST, "This cannot be authorized", "", &body, Forms::None)
}

fn other_user(username: &str, request: &str) -> String {
    format!(
        "<p class=\"note\">You are logged in as <strong>{}</strong>. \
         <a href=\"{}\">Log in as somebody else</a></p>\n",
        escape(username),
        escape(&authorize_path(request, "log_in"))
    )
}

/// Adds one navigation from our own site: browsers send no cookies with a navigation that began on another site.
pub(super) fn hop(request: &str) -> Response {
    let to = escape(&authorize_path(request, "here"));
    let head = format!("<meta http-equiv=\"refresh\" content=\"0; url={to}\">\n");
    page(StatusCode::OK, "Continue", &head, &format!("<p><a href=\"{to}\">Continue</a></p>\n"), Forms::None)
}

pub(super) fn log_in(status: StatusCode, request: &str, form_token: &str, problem: Option<&str>) -> Response {
    let problem =
        problem.map(|text| format!("<p class=\"fault\">{}</p>\n", escape(text))).unwrap_or_default();
    let body = format!(
        "<p>An app asks to act for you. Log in to see which one, and what it asks for.</p>\n{problem}\
         <form method=\"post\" action=\"{BASE}/login\">\n{}{}\
         <label>User name or email\n<input name=\"login\" autocomplete=\"username\" required></label>\n\
         <label>Password\n<input name=\"password\" type=\"password\" autocomplete=\"current-password\" required></label>\n\
         <button>Log in</button>\n</form>\n",
        hidden("request", request),
        hidden("form_token", form_token),
    );
    page(status, "Log in", "", &body, Forms::Here)
}

pub(super) fn second_factor(
    status: StatusCode,
    request: &str,
    form_token: &str,
    mfa_token: &str,
    problem: Option<&str>,
) -> Response {
    let problem =
        problem.map(|text| format!("<p class=\"fault\">{}</p>\n", escape(text))).unwrap_or_default();
    let body = format!(
        "{problem}<form method=\"post\" action=\"{BASE}/login/mfa\">\n{}{}{}\
         <label>Code of your authenticator, or a backup code\n\
         <input name=\"code\" autocomplete=\"one-time-code\" required></label>\n\
         <button>Log in</button>\n</form>\n<p class=\"note\"><a href=\"{}\">Begin again</a></p>\n",
        hidden("request", request),
        hidden("form_token", form_token),
        hidden("mfa_token", mfa_token),
        escape(&authorize_path(request, "log_in")),
    );
    page(status, "Second factor", "", &body, Forms::Here)
}

/// The contents of the consent page.
pub(super) struct Question<'a> {
    pub(super) registered: &'a RegisteredApp,
    pub(super) username: &'a str,
    pub(super) redirect_uri: &'a str,
    /// The scopes that can be allowed, and those that were asked for beyond that.
    pub(super) scopes: &'a [KeyScope],
    pub(super) is_narrowed: bool,
    pub(super) request: &'a str,
    pub(super) form_token: &'a str,
}

pub(super) fn consent(question: &Question<'_>) -> Response {
    let Question { registered, request, .. } = question;
    let app = &registered.app;
    let about = app.description.as_deref().map(|text| format!("<p class=\"note\">{}</p>\n", escape(text)));
    let asked = if question.scopes.is_empty() {
        "<p class=\"fault\">Your role holds nothing of what it asks for.</p>\n".to_owned()
    } else {
        format!("<p>It asks to do this for you:</p>\n<ul>\n{}</ul>\n", list(question.scopes))
    };
    let narrowed = if question.is_narrowed && !question.scopes.is_empty() {
        "<p class=\"note\">It asked for more; what your role does not hold is left out.</p>\n"
    } else {
        ""
    };
    let allow = if question.scopes.is_empty() {
        ""
    } else {
        "<button name=\"decision\" value=\"allow\">Allow</button>\n"
    };
    let body = format!(
        "<p><strong>{name}</strong> of <strong>{organization}</strong> wants to act for you.</p>\n{about}{asked}\
         {narrowed}<p class=\"note\">It never learns your password and never does more than you may. \
         You can end this at any time.</p>\n<p class=\"note\">You will go on to <code>{to}</code></p>\n\
         <form method=\"post\" action=\"{BASE}/authorize\">\n{hidden_request}{hidden_token}{allow}\
         <button name=\"decision\" value=\"deny\">Deny</button>\n</form>\n{other}",
        name = escape(&app.name),
        organization = escape(&registered.org_name),
        about = about.unwrap_or_default(),
        to = escape(question.redirect_uri),
        hidden_request = hidden("request", request),
        hidden_token = hidden("form_token", question.form_token),
        other = other_user(question.username, request),
    );
    let scheme = redirect::scheme(question.redirect_uri);
    page(StatusCode::OK, "Allow this app?", "", &body, Forms::HereAndTo(scheme))
}

/// Lists what the scopes allow, each permission once, with its description.
fn list(scopes: &[KeyScope]) -> String {
    let mut permissions: Vec<Permission> = scopes.iter().flat_map(KeyScope::permissions).copied().collect();
    permissions.sort_unstable();
    permissions.dedup();
    let line = |permission: &Permission| {
        format!("<li>{} <span class=\"note\">{permission}</span></li>\n", escape(permission.allows()))
    };
    permissions.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_text_and_nothing_else() {
        assert_eq!(escape("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
        assert_eq!(
            hidden("a", "\"><script>"),
            "<input type=\"hidden\" name=\"a\" value=\"&quot;&gt;&lt;script&gt;\">\n"
        );
    }

    #[test]
    fn a_policy_names_the_style_of_the_page_and_where_forms_lead() {
        let response = page(StatusCode::OK, "t", "", "", Forms::HereAndTo("org.example.app"));
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.contains("form-action 'self' org.example.app:;"), "{policy}");
        assert!(
            policy.contains(&format!("'sha256-{}'", *STYLE_DIGEST))
                && policy.contains("frame-ancestors 'none'")
        );
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
