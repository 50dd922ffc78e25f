//! What the log says while nobody has set the service up.

use std::net::SocketAddr;

use heddle_store::setup;

use crate::app::App;

/// Logs the call that completes the setup, while it is open.
///
/// On a loopback address the line is a command that needs only a password. Elsewhere the route is named: the call may
/// need more there than a reader of this line may know.
pub(crate) async fn announce(app: &App, addr: SocketAddr) -> heddle_store::Result<()> {
    let mut tx = app.db.read().await?;
    if setup::is_completed(&mut tx).await? {
        return Ok(());
    }
    let url = format!("http://{addr}{}/setup/complete", crate::http::PREFIX);
    if addr.ip().is_loopback() {
        tracing::info!(
            "setup is open; create the first organization and its administrator, with a password of your own: {}",
            command(&url)
        );
    } else {
        tracing::info!(
            "setup is open; create the first organization and its administrator with POST {url}: \
             'First start' in the README shows the body"
        );
    }
    Ok(())
}

/// A command for a shell. The body has what the route requires and nothing else.
fn command(url: &str) -> String {
    format!(
        r#"curl -X POST {url} -H 'content-type: application/json' -d '{{"organization":{{"name":"Example"}},"admin":{{"username":"admin","email":"admin@example.net","password":"YOUR-PASSWORD"}}}}'"#
    )
}
