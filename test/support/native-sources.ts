/**
 * Sources as Node loads them itself, for tests that replace none: Vite takes each module to pieces, for each process
 * again, and every import of another file is then a call. As esbuild writes them, below node_modules/.cache.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { build } from 'esbuild'
import type { Plugin } from 'vitest/config'

const root = resolve(import.meta.dirname, '../..')
const cache = join(root, 'node_modules/.cache/tests')
const FOLDERS = ['src', 'bench', 'grammar']

const asScript = (path: string): string => path.replace(/\.ts$/, '.js')

async function writeSources(): Promise<void> {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((f) => /\.(ts|js)$/.test(f) && !f.endsWith('.d.ts'))
      .map((f) => `${folder}/${f}`),
  )
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
    if (existsSync(path) && readFileSync(path, 'utf8') === text) continue
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
