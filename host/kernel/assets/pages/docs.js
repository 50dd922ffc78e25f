// Starts Swagger UI on this server's own document. The token of "Authorize" stays in the page's memory.
// A sign-in sets cookies, too: writes of a browser that has them must show that a page of this server sends them.
const csrfToken = () => {
  const pair = document.cookie.split("; ").find((one) => one.startsWith("svc_csrf="));
  return pair && decodeURIComponent(pair.slice("svc_csrf=".length));
};

window.ui = SwaggerUIBundle({
  url: "/api/v1/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  persistAuthorization: false,
  validatorUrl: null,
  requestInterceptor: (request) => {
    const isOwn = new URL(request.url, location.href).origin === location.origin;
    const isRead = ["GET", "HEAD", "OPTIONS"].includes((request.method || "GET").toUpperCase());
    const token = csrfToken();
    if (isOwn && !isRead && token) request.headers["X-CSRF-Token"] = token;
    return request;
  },
});
