/**
 * Compiles the sources with esbuild into node_modules/.cache, so that Node loads them natively in the test processes.
 * Vite would transform every module again in each process and turn each access to an import into a call.
 */
import { mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { build } from 'esbuild'
import type { Plugin } from 'vitest/config'

const root = resolve(import.meta.dirname, '../..')
const cache = join(root, 'node_modules/.cache/tests')
const FOLDERS = ['src', 'bench', 'grammar']

const asScript = (path: string): string => path.replace(/\.ts$/, '.js')

const modified = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Writes the files that are newer than their copies in the cache. */
async function writeSources(): Promise<void> {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((f) => /\.(ts|js)$/.test(f) && !f.endsWith('.d.ts'))
      .map((f) => `${folder}/${f}`),
  ).filter((f) => modified(join(root, f)) >= modified(join(cache, asScript(f))))
  if (files.length === 0) return
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: files,
    outbase: root,
    outdir: cache,
    write: false,
    // For the names of imports alone: every file stays one.
    bundle: true,
    packages: 'external',
    plugins: [
      {
        name: 'imports as scripts',
        setup: ({ onResolve }) =>
          onResolve({ filter: /^\./ }, ({ path, kind }) =>
            kind === 'entry-point' ? undefined : { path: asScript(path), external: true },
          ),
      },
    ],
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'inline',
    sourcesContent: false,
  })
  // Runs beside each other see whole files.
  for (const { path, text } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(`${path}.${process.pid}`, text)
    renameSync(`${path}.${process.pid}`, path)
  }
}

/** For runs that end: what changes later is not seen. */
export async function nativeSources(): Promise<Plugin> {
  await writeSources()
  return {
    name: 'native sources',
    enforce: 'pre',
    resolveId(id, from) {
      if (from === undefined || !id.startsWith('.')) return
      const path = relative(root, resolve(dirname(from), id))
      if (!path.endsWith('.d.ts') && FOLDERS.some((folder) => path.startsWith(`${folder}/`)))
        return { id: join(cache, asScript(path)), external: true }
    },
  }
}
