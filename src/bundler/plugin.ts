/**
 * `sparsetile/bundler`: imports of plans in Vite, Rollup, Rolldown, esbuild, webpack, Rspack and Bun.
 * ```ts
 * // vite.config.ts
 * import { vite as sparsetile } from 'sparsetile/bundler'
 * export default { plugins: [sparsetile()] }
 * ```
 */
import { dirname } from 'node:path'
import { createUnplugin } from 'unplugin'
import { SptError } from '../ast/diagnostics/diagnostic.ts'
import { render } from '../ast/diagnostics/render.ts'
import { position, SourceText } from '../ast/diagnostics/source-frame.ts'
import { sourceOf } from '../ast/diagnostics/span.ts'
import { locate } from '../io/package/package.ts'
import { planModule } from './plan-module.ts'
import { compilePlan, isPlanImport, planRequest, resolvedImport } from './plan-request.ts'

/** A diagnostic in the form of bundlers: the rendered text, with file, line and column. */
export function bundlerMessage({ diagnostics, sources = new Map() }: SptError): {
  readonly message: string
  readonly loc?: { readonly file: string; readonly line: number; readonly column: number }
} {
  const message = render(diagnostics, sources)
  const { span } = diagnostics[0]!
  const source = span && sourceOf(span, sources)
  if (!source) return { message }
  const { line, column } = position(new SourceText(source.text), span.start)
  return { message, loc: { file: locate(source.name), line, column: column - 1 } }
}

/**
 * The plugin for each bundler, with what the types of bundlers have in common: the types of a bundler that is not installed would not
 * resolve.
 */
export interface Plugins {
  readonly vite: () => { readonly name: string }
  readonly rollup: () => { readonly name: string }
  readonly rolldown: () => { readonly name: string }
  readonly farm: () => { readonly name: string }
  // biome-ignore lint/suspicious/noExplicitAny: the type of the argument belongs to the bundler
  readonly esbuild: () => { name: string; setup: (build: any) => void }
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly bun: () => { name: string; setup: (build: any) => void }
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly webpack: () => { apply: (compiler: any) => void }
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly rspack: () => { apply: (compiler: any) => void }
}

const sparsetile = createUnplugin(() => ({
  name: 'sparsetile',
  enforce: 'pre',
  resolveId(id, importer) {
    if (!isPlanImport(id)) return null
    return resolvedImport(id, importer ? dirname(importer.split('?')[0]!) : process.cwd())
  },
  loadInclude: isPlanImport,
  async load(id) {
    if (!isPlanImport(id)) return null
    try {
      const request = planRequest(id)
      this.addWatchFile(request.file)
      const { plan, program } = await compilePlan(request)
      for (const path of program.sources.keys()) this.addWatchFile(locate(path))
      return planModule(plan, request)
    } catch (e) {
      if (e instanceof SptError) {
        for (const path of (e.sources ?? new Map<string, unknown>()).keys()) this.addWatchFile(locate(path))
        this.error({ ...bundlerMessage(e), id })
        // esbuild reports the error after the hook has returned.
        return ''
      }
      throw e
    }
  },
})) as unknown as Plugins

export const { vite, rollup, rolldown, esbuild, webpack, rspack, farm, bun } = sparsetile
export default sparsetile
