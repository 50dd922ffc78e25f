//! The contents of a notification, and its form for each service.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heddle_core::notification::Severity;
use heddle_core::{OrgId, Timestamp};
use heddle_store::channels::ChannelId;
use serde_json::{Value, json};

/// Most characters of a subject.
pub const SUBJECT_CHARS_MAX: usize = 200;
/// Most characters of a body.
pub const BODY_CHARS_MAX: usize = 4000;
/// Limits of Slack for a header and for a section.
const SLACK_HEADER_CHARS_MAX: usize = 150;
const SLACK_SECTION_CHARS_MAX: usize = 3000;
/// Limit of ntfy for a message, in bytes: it turns a message of 4096 bytes or more into a file.
const NTFY_BODY_BYTES_MAX: usize = 4095;

#[derive(Debug, Clone)]
pub struct Message {
    pub subject: String,
    pub body: String,
    pub severity: Severity,
    /// The sender of the message: `fabric.notify`.
    pub source: &'static str,
}

impl Message {
    /// Returns the message as JSON for programs.
    pub(super) fn for_webhook(&self, org: OrgId, channel: ChannelId, now: Timestamp) -> Value {
        json!({
            "subject": self.subject,
            "body": self.body,
            "severity": self.severity,
            "source": self.source,
            "organization_id": org,
            "channel_id": channel,
            "sent_at": heddle_core::event::format_time(now),
        })
    }

    /// Returns Slack's blocks, and a text for clients that show no blocks. The message is text and no markup.
    pub(super) fn for_slack(&self) -> Value {
        let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let plain = |text: &str| json!({ "type": "plain_text", "text": text, "emoji": false });
        let header = cut(&self.subject, SLACK_HEADER_CHARS_MAX);
        let mut blocks = vec![json!({ "type": "header", "text": plain(&header) })];
        if !self.body.is_empty() {
            let section = cut(&self.body, SLACK_SECTION_CHARS_MAX);
            blocks.push(json!({ "type": "section", "text": plain(&section) }));
        }
        let word = self.severity.as_str();
        blocks.push(json!({ "type": "context", "elements": [plain(&format!("{word}, {}", self.source))] }));
        json!({ "text": escaped(&format!("[{word}] {}", self.subject)), "blocks": blocks })
    }

    /// Returns an adaptive card for the workflow of a Teams channel. The message is text and no markup.
    pub(super) fn for_teams(&self) -> Value {
        let color = match self.severity {
            Severity::Info => "Default",
            Severity::Warning => "Warning",
            Severity::Critical => "Attention",
        };
        let run = |text: &str| json!({ "type": "TextRun", "text": text });
        let mut subject = run(&self.subject);
        subject["weight"] = json!("Bolder");
        subject["size"] = json!("Medium");
        subject["color"] = json!(color);
        let mut said = vec![json!({ "type": "RichTextBlock", "inlines": [subject] })];
        if !self.body.is_empty() {
            said.push(json!({ "type": "RichTextBlock", "inlines": [run(&self.body)] }));
        }
        json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": null,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": said,
                },
            }],
        })
    }

    /// Returns ntfy's title. It is a header, so text beyond ASCII is encoded (RFC 2047), as ntfy reads it.
    ///
    /// `None` without a body: then the subject is the message.
    pub(super) fn ntfy_title(&self) -> Option<String> {
        if self.has_no_body() {
            return None;
        }
        if self.subject.is_ascii() {
            return Some(self.subject.clone());
        }
        Some(format!("=?UTF-8?B?{}?=", STANDARD.encode(&self.subject)))
    }

    /// Returns ntfy's message. ntfy would replace an empty one with "triggered".
    pub(super) fn ntfy_body(&self) -> String {
        let said = if self.has_no_body() { &self.subject } else { &self.body };
        cut_bytes(said, NTFY_BODY_BYTES_MAX)
    }

    fn has_no_body(&self) -> bool {
        self.body.trim().is_empty()
    }

    /// Returns a priority from 1 to 5.
    pub(super) fn ntfy_priority(&self) -> &'static str {
        match self.severity {
            Severity::Info => "3",
            Severity::Warning => "4",
            Severity::Critical => "5",
        }
    }

    /// Shows the severity to a reader who gets mails of several organizations.
    pub(super) fn mail_subject(&self) -> String {
        match self.severity {
            Severity::Info => self.subject.clone(),
            other => format!("[{other}] {}", self.subject),
        }
    }
}

fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    text.chars().take(chars_max - 1).chain(['…']).collect()
}

fn cut_bytes(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max - '…'.len_utf8());
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(subject: &str, body: &str) -> Message {
        Message {
            subject: subject.to_owned(),
            body: body.to_owned(),
            severity: Severity::Critical,
            source: "fabric.notify",
        }
    }

    #[test]
    fn slack_gets_text_that_cannot_become_markup() {
        let said = message("<!channel> down & out", "*b*").for_slack();
        assert_eq!(said["text"], "[critical] &lt;!channel&gt; down &amp; out");
        assert_eq!(said["blocks"][0]["text"]["type"], "plain_text");
        assert_eq!(said["blocks"][1]["text"]["text"], "*b*");
        let long = message(&"s".repeat(200), "").for_slack();
        let header = long["blocks"][0]["text"]["text"].as_str().unwrap();
        assert_eq!(header.chars().count(), SLACK_HEADER_CHARS_MAX);
        assert_eq!(long["blocks"].as_array().unwrap().len(), 2, "an empty body is no block");
    }

    #[test]
    fn teams_gets_an_adaptive_card() {
        let said = message("Line down", "[link](http://x)").for_teams();
        let card = &said["attachments"][0];
        assert_eq!(card["contentType"], "application/vnd.microsoft.card.adaptive");
        let body = &card["content"]["body"];
        assert_eq!(body[0]["inlines"][0]["color"], "Attention");
        assert_eq!(
            body[1],
            json!({ "type": "RichTextBlock", "inlines": [{ "type": "TextRun", "text": "[link](http://x)" }] })
        );
    }

    #[test]
    fn a_title_for_ntfy_is_ascii() {
        assert_eq!(message("Line down", "b").ntfy_title().as_deref(), Some("Line down"));
        assert_eq!(message("Störung", "b").ntfy_title().as_deref(), Some("=?UTF-8?B?U3TDtnJ1bmc=?="));
    }

    #[test]
    fn a_message_for_ntfy_is_never_a_file_and_never_empty() {
        let fits = "x".repeat(4095);
        assert_eq!(message("s", &fits).ntfy_body(), fits);
        assert_eq!(message("s", "short").ntfy_body(), "short");
        for letter in ["x", "ä", "€", "😀"] {
            let said = message("s", &letter.repeat(BODY_CHARS_MAX + 100)).ntfy_body();
            assert!((4090..4096).contains(&said.len()) && said.ends_with('…'), "{letter}: {}", said.len());
            assert!(said.trim_end_matches('…').chars().all(|one| letter.contains(one)), "{letter}");
        }
        for empty in ["", " \n\t"] {
            let said = message("Störung", empty);
            assert_eq!((said.ntfy_title(), said.ntfy_body().as_str()), (None, "Störung"));
        }
    }
}
