"""A mail server of a test's own: keeps every mail as a JSON file, and fails where it is told to.

usage: smtp_sink.py FOLDER PORT MODE USER PASSWORD

MODE: plain     neither TLS nor a login, as a relay on the same host
      starttls  refuses mails before STARTTLS and a login
      tls       TLS from the first byte, and a login
      broken    answers 451 to every mail
      flaky     answers 451 to the first two mails, and takes the third
      refusing  answers 550 to every recipient, and repeats the address
"""

import asyncio
import json
import pathlib
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

folder, port, mode, user, password = pathlib.Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]


def note(name, text):
    with (folder / name).open("a") as file:
        file.write(text + "\n")


class Handler:
    tries = 0

    async def handle_MAIL(self, server, session, envelope, address, options):
        self.tries += 1
        note("tries", address)
        if mode == "broken" or (mode == "flaky" and self.tries <= 2):
            return "451 try again later"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if mode == "refusing":
            return f"550 there is no <{address}> here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = {
            "hello": session.host_name,
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "tls": session.ssl is not None,
            "login": session.authenticated,
            "content": envelope.content.decode(),
        }
        number = len(list(folder.glob("*.json")))
        made = folder / f"{number:06}.making"
        made.write_text(json.dumps(mail))
        made.rename(made.with_suffix(".json"))
        return "250 kept"


def authenticate(server, session, envelope, mechanism, data):
    fits = (data.login, data.password) == (user.encode(), password.encode())
    # What is not handled, the library refuses with 535.
    return AuthResult(success=fits, handled=fits)


async def main():
    context = None
    if mode in ("starttls", "tls"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
    handler = Handler()

    def connection():
        return SMTP(
            handler,
            hostname="sink.test",
            enable_SMTPUTF8=True,
            tls_context=context if mode == "starttls" else None,
            require_starttls=mode == "starttls",
            auth_required=context is not None,
            # With TLS from the first byte the library does not know that there is TLS.
            auth_require_tls=mode == "starttls",
            authenticator=authenticate,
            timeout=30,
        )

    wrapped = context if mode == "tls" else None
    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", port, ssl=wrapped)
    async with server:
        await server.serve_forever()


asyncio.run(main())
