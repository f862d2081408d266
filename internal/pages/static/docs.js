// Starts the viewer. With a demo key it can send requests, each operation with a new idempotency key.
const page = document.getElementById('docs');
const key = page.dataset.demoKey;
page.textContent = '';
const ui = SwaggerUIBundle({
  url: '/openapi.yaml',
  domNode: page,
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null, // that is another site
  supportedSubmitMethods: key ? ['get', 'put', 'post', 'patch'] : [],
  tryItOutEnabled: Boolean(key),
  parameterMacro: (operation, parameter) => (parameter.name === 'Idempotency-Key' ? crypto.randomUUID() : undefined),
  onComplete: () => key && ui.preauthorizeApiKey('apiKey', key),
});
