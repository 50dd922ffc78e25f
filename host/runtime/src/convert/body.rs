//! Bodies of planned calls.

use heddle_core::change::NativeCall;
use heddle_core::file::{SentFile, SentPart, digest_of};
use serde_json::Value;

use super::{Fit, Reader, Unfit, bounded, key};
use crate::bindings::exports::heddle::adapter::changes;

/// Sets the body of a planned call. What is sent is not cut.
pub(super) fn set(call: &mut NativeCall, body: changes::NativeBody, reader: &mut Reader) -> Fit<()> {
    match body {
        changes::NativeBody::None => {}
        changes::NativeBody::Json(body) => match reader.json("a planned call's body", &body)? {
            Value::Null => return Err(Unfit::Form("a planned call's body is null".to_owned())),
            body => call.body = Some(body),
        },
        changes::NativeBody::Form(fields) => call.form = Some(bounded("a planned call's form", fields)?),
        changes::NativeBody::File(sent) => call.file = Some(file(sent)?),
        changes::NativeBody::Multipart(parts) => {
            let parts = bounded("a planned call's parts", parts)?;
            call.multipart = Some(parts.into_iter().map(part).collect::<Fit<_>>()?);
        }
    }
    Ok(())
}

fn part(part: changes::Part) -> Fit<SentPart> {
    let (text, file) = match part.value {
        changes::PartValue::Text(text) => (Some(text), None),
        changes::PartValue::File(sent) => (None, Some(file(sent)?)),
    };
    Ok(SentPart { name: key("the name of a part", part.name)?, text, file })
}

/// The size is not the component's to say: it follows from the file.
fn file(sent: changes::FileBody) -> Fit<SentFile> {
    let Some(digest) = digest_of(&sent.file) else {
        return Err(Unfit::Form("a planned call's file is no reference of a payload".to_owned()));
    };
    Ok(SentFile {
        sha256: digest.to_owned(),
        name: key("the name of a file", sent.name)?,
        content_type: key("the content type of a file", sent.content_type)?,
        size_bytes: 0,
    })
}
