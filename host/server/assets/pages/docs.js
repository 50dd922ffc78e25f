// Starts Swagger UI on this server's own document. The token of "Authorize" stays in the page's memory.
window.ui = SwaggerUIBundle({
  url: "/api/v1/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  persistAuthorization: false,
  validatorUrl: null,
});
