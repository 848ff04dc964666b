// Lets the conformance suite start on Node.js 20: it imports fs.globSync, which came
// with 22, for a command that is not used here. Loaded with node --import.
import * as fs from 'node:fs';
import { register } from 'node:module';

if (!fs.globSync) register('./node20-hooks.mjs', import.meta.url);
