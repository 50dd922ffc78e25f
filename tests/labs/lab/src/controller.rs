//! What a simulator implements.

use serde_json::Value;

use crate::{Answer, Context, Outgoing, Request};

/// A simulated controller: its state, and how it answers from it.
///
/// Every method runs under the lab's one lock, so requests never overlap. No method may block. Nothing runs by
/// itself: what takes time is kept with its deadline, and carried out by [`Controller::advance`].
pub trait Controller: Send + 'static {
    /// Answers one request.
    fn handle(&mut self, request: &Request, context: &mut Context) -> Answer;

    /// All that a test may want to assert on, for the control port.
    fn state(&self, context: &Context) -> Value;

    /// Called once, before the first request.
    fn started(&mut self, _context: &mut Context) {}

    /// Carries out what has come due by [`Context::now`]. Called before every request, order and read.
    fn advance(&mut self, _context: &mut Context) {}

    /// Whether connections are served. While false, all of them are closed.
    fn is_reachable(&self) -> bool {
        true
    }

    /// Ends every session at once, as an administrator or a restart of the session service does.
    fn end_sessions(&mut self, _context: &mut Context) {}

    /// Loses what lives in memory, as a power cut does. How long the controller is away is the skeleton's part.
    fn restart(&mut self, context: &mut Context) {
        self.end_sessions(context);
    }

    /// An edit by a person at the device, behind the manager's back. The simulator defines its form, and returns
    /// what may be of use to the test, such as a new id, or says what is wrong with it.
    fn edit(&mut self, _edit: &Value, _context: &mut Context) -> Result<Value, String> {
        Err("this controller knows no edits".to_owned())
    }

    /// The vendor's form of an error that the skeleton makes: a body over the limit, an ordered status.
    fn refusal(&self, status: u16, _request: &Request) -> Answer {
        Answer::status(status)
    }

    /// Names of faults besides the skeleton's. The simulator asks for them with [`Context::fault`].
    fn vendor_faults(&self) -> &'static [&'static str] {
        &[]
    }

    /// The texts that an open WebSocket or stream sends now, oldest first; `None` closes it. Asked many times a second.
    fn socket_texts(&mut self, _socket: u64, _context: &mut Context) -> Option<Vec<String>> {
        None
    }

    /// A text that a client sent over a WebSocket.
    fn socket_received(&mut self, _socket: u64, _text: &str, _context: &mut Context) {}

    /// A WebSocket or stream is closed, by whichever side.
    fn socket_closed(&mut self, _socket: u64) {}

    /// The requests that the controller sends to others now, oldest first. Asked many times a second, while it is on the
    /// network.
    fn outgoing(&mut self, _context: &mut Context) -> Vec<Outgoing> {
        Vec::new()
    }

    /// A request was sent: the status of the answer, `None` where there was none.
    fn sent(&mut self, _request: &Outgoing, _status: Option<u16>, _context: &mut Context) {}

    /// The vendor's part of the control port. It is asked first; `None` leaves the order to the skeleton.
    fn control(&mut self, _request: &Request, _context: &mut Context) -> Option<Answer> {
        None
    }
}
