#!/usr/bin/env node
// Written so that very old versions of Node.js can read it: their users get one line, not a syntax error.

var needed = [22, 18]
var have = process.versions.node.split('.').map(Number)

if (have[0] < needed[0] || (have[0] === needed[0] && have[1] < needed[1])) {
  process.stderr.write(
    'pilot needs Node.js ' +
      needed.join('.') +
      ' or newer; this is ' +
      process.version +
      '. Install one for this project with: npm install --save-dev node@24\n',
  )
  process.exitCode = 3
} else {
  // Before Node.js 24 SQLite is called experimental; what pilot uses of it is not.
  var emitWarning = process.emitWarning
  process.emitWarning = function (warning) {
    if (!/SQLite is an experimental/.test(String(warning))) emitWarning.apply(process, arguments)
  }
  import('node:module')
    .then((module) => {
      module.enableCompileCache()
      return import('node:fs')
    })
    .then((fs) => {
      // The checkout runs its sources; the package holds what they were compiled to.
      var source = new URL('../src/cli.ts', import.meta.url)
      return import(fs.existsSync(source) ? source.href : new URL('../dist/src/cli.js', import.meta.url).href)
    })
    .catch((error) => {
      process.stderr.write(String((error && error.stack) || error) + '\n')
      process.exitCode = 4
    })
}
