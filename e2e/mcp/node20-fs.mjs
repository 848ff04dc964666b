export * from 'node:fs';

export const globSync = () => {
  throw new Error('fs.globSync needs Node.js 22');
};
