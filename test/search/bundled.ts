/** Scripts of this package's sources, for processes of their own. */
import { createRequire } from 'node:module'
import { build } from 'esbuild'

const require = createRequire(import.meta.url)

/** Bundles a module, whose imports are relative to the package, into a file; its path. Native packages stay where they are. */
export async function bundled(contents: string, outfile: string): Promise<string> {
  await build({
    stdin: { contents, resolveDir: process.cwd(), loader: 'ts' },
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
    plugins: [
      {
        name: 'installed packages',
        setup: ({ onResolve }) =>
          onResolve({ filter: /^(?:libsql|bullmq|ioredis)$/ }, ({ path }) => ({
            path: require.resolve(path),
            external: true,
          })),
      },
    ],
  })
  return outfile
}
