import { defineConfig } from 'vitest/config'

// Three projects: `unit` is quick and joins `npm run check`; `e2e` runs the real CLI; `long` is for its own script.
export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source', 'node', 'import', 'default'] } },
  test: {
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: ['tests/{unit,contract,property,trajectory}/**/*.test.ts'] },
      },
      { extends: true, test: { name: 'e2e', include: ['tests/{e2e,crash,remote}/**/*.test.ts'] } },
      { extends: true, test: { name: 'pilot', include: ['tests/pilot/**/*.test.ts'], testTimeout: 900_000 } },
    ],
  },
})
