// Runs dependency-cruiser with the TypeScript whose API it reads sources by: TypeScript 7 has none yet.

import { registerHooks } from 'node:module'

registerHooks({
  resolve: (specifier, context, nextResolve) =>
    nextResolve(specifier.replace(/^typescript(?=$|\/)/, 'typescript-6'), context),
})

await import('../node_modules/dependency-cruiser/bin/dependency-cruiser.mjs')
