//! Where the files of a catalogue are: on a web server, or in a folder with a mirror of one.
//!
//! What is fetched is judged by the package format. Here it is bounded in time and size, and nothing more.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use heddle_core::tls::TlsPolicy;
use heddle_kernel::app::App;
use heddle_kernel::task;
use heddle_kernel::version::USER_AGENT;
use heddle_marketplace::catalog::Archive;
use heddle_runtime::{Excess, OwnRequest, Reach};
use http::{HeaderValue, Method, header};
use url::Url;

/// Time for a file: a little, and more for each mebibyte that it may have.
const FILE_TIMEOUT: Duration = Duration::from_secs(20);
const MIB_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the files of a catalogue are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Ends with `/`.
    Address(Url),
    Folder(PathBuf),
}

impl Source {
    /// Reads the setting; `None` where it is neither an address nor a path.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let Ok(mut url) = Url::parse(text) else {
            return (!text.is_empty()).then(|| Self::Folder(PathBuf::from(text)));
        };
        let is_plain = url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        match url.scheme() {
            "https" | "http" if is_plain && url.host().is_some() => {
                if !url.path().ends_with('/') {
                    url.set_path(&format!("{}/", url.path()));
                }
                Some(Self::Address(url))
            }
            "file" => url.to_file_path().ok().map(Self::Folder),
            _ => None,
        }
    }

    /// The bytes of a file beside the catalogue, of a longer one a byte more than `bytes_max`; `None` where there is no such
    /// file. Names come from the package format, which lets none lead elsewhere.
    ///
    /// # Errors
    /// Says why nothing can be known of the file.
    pub(crate) async fn file(
        &self,
        app: &App,
        name: &str,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                task::block(move || read_file(&path, bytes_max)).await
            }
            Self::Address(base) => {
                let url = base.join(name).map_err(|error| error.to_string())?;
                get(app, url, Reach::Premises, bytes_max).await
            }
        }
    }

    /// The same of a package. Its address may lead to another server, then to one of the public network only; a mirror has
    /// such a package under the name of its SHA-256, and is not left.
    pub(crate) async fn package(&self, app: &App, listed: &Archive) -> Result<Option<Vec<u8>>, String> {
        let Ok(url) = Url::parse(&listed.url) else {
            return self.file(app, &listed.url, listed.length).await;
        };
        if matches!(self, Self::Folder(_)) {
            return self.file(app, &format!("packages/{}.zip", listed.sha256), listed.length).await;
        }
        let is_own = matches!(self, Self::Address(base) if base.origin() == url.origin());
        let reach = if is_own { Reach::Premises } else { Reach::Outward };
        get(app, url, reach, listed.length).await
    }
}

/// Asks a server once. One that has no such file says so with 404 or 410; a store that does not list its files says 403.
async fn get(app: &App, url: Url, reach: Reach, bytes_max: u64) -> Result<Option<Vec<u8>>, String> {
    let place = format!("{}{}", url.origin().ascii_serialization(), url.path());
    let most = usize::try_from(bytes_max.saturating_add(1)).unwrap_or(usize::MAX);
    let mebibytes = u32::try_from(bytes_max >> 20).unwrap_or(u32::MAX);
    let request = OwnRequest {
        method: Method::GET,
        url,
        tls: TlsPolicy::default(),
        headers: vec![(header::USER_AGENT, HeaderValue::from_static(USER_AGENT))],
        body: Vec::new(),
        timeout: FILE_TIMEOUT + MIB_TIMEOUT * mebibytes,
        body_bytes_max: most,
        excess: Excess::Cut,
        reach,
    };
    let answer = app.runtime.fetch(request).await.map_err(|fault| format!("{place}: {}", fault.message))?;
    match answer.status {
        200 => Ok(Some(answer.body)),
        403 | 404 | 410 => Ok(None),
        status => Err(format!("{place}: the server answered {status}")),
    }
}

/// The bytes of a file, of a longer one a byte more than `bytes_max`; `None` where there is none.
pub(crate) fn read_file(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, String> {
    let problem = |error: std::io::Error| format!("'{}': {error}", path.display());
    let is_file = match std::fs::metadata(path) {
        Ok(found) => found.is_file(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(problem(error)),
    };
    // Reading a pipe may never end.
    if !is_file {
        return Err(format!("'{}' is no file", path.display()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(problem)?;
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(problem)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_is_at_an_address_or_in_a_folder() {
        let address = |text: &str| Some(Source::Address(Url::parse(text).unwrap()));
        let folder = |text: &str| Some(Source::Folder(PathBuf::from(text)));
        assert_eq!(Source::of("https://a.test"), address("https://a.test/"));
        assert_eq!(Source::of("https://a.test/b"), address("https://a.test/b/"));
        assert_eq!(Source::of("http://10.0.0.1:8080/b/"), address("http://10.0.0.1:8080/b/"));
        assert_eq!(Source::of("/srv/mirror"), folder("/srv/mirror"));
        assert_eq!(Source::of("mirror"), folder("mirror"));
        assert_eq!(Source::of("file:///srv/mirror"), folder("/srv/mirror"));
        for refused in ["", "ftp://a.test/", "https://a.test/?b", "https://u:p@a.test/", "https://a.test/#b"]
        {
            assert_eq!(Source::of(refused), None, "{refused}");
        }
    }

    #[test]
    fn of_a_file_that_is_too_long_a_byte_more_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"123456").unwrap();
        assert_eq!(read_file(&path, 6).unwrap().unwrap(), b"123456");
        assert_eq!(read_file(&path, 3).unwrap().unwrap(), b"1234");
        assert_eq!(read_file(&folder.path().join("b"), 3).unwrap(), None);
        assert!(read_file(folder.path(), 3).unwrap_err().contains("no file"));
    }
}
