/** Scripts of this package's sources, for processes of their own. */
import { createRequire } from 'node:module'
import { type BuildOptions, build } from 'esbuild'

const require = createRequire(import.meta.url)

/** Bundles a module, whose imports are relative to the package, into a file; its path. Native packages stay where they are. */
export const bundled = (contents: string, outfile: string): Promise<string> =>
  bundle({ stdin: { contents, resolveDir: process.cwd(), loader: 'ts' } }, outfile)

/** The same of one of the sources. */
export const bundledFile = (path: string, outfile: string): Promise<string> =>
  bundle({ entryPoints: [path] }, outfile)

async function bundle(from: Pick<BuildOptions, 'stdin' | 'entryPoints'>, outfile: string): Promise<string> {
  await build({
    ...from,
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
          onResolve({ filter: /^libsql$/ }, ({ path }) => ({
            path: require.resolve(path),
            external: true,
          })),
      },
    ],
  })
  return outfile
}
