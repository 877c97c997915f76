// Puts this package's own command among the installed ones, so that `npx pilot` in a checkout starts it directly.
// Runs as npm's `prepare`, in the checkout only.

import { mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../node_modules/.bin/', import.meta.url))
mkdirSync(folder, { recursive: true })
const temp = `${folder}.pilot.${process.pid}`
symlinkSync('../../bin/pilot.js', temp)
renameSync(temp, `${folder}pilot`)
