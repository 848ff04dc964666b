const fs = new URL('./node20-fs.mjs', import.meta.url).href;

export function resolve(name, context, next) {
  if (name === 'fs' && context.parentURL?.includes('/@modelcontextprotocol/conformance/')) return { url: fs, shortCircuit: true };
  return next(name, context);
}
