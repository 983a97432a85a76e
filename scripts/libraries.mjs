// Libraries that the bundles of the package and of the playground contain in part.
import { join, resolve } from 'node:path'

const modules = resolve(import.meta.dirname, '../node_modules')
/**
 * Libraries that few commands use are run when they are first called. The grammar comes ready-made: what reads the texts of
 * grammars is left out.
 */
const deferred = {
  'ohm-js': {
    resolveDir: join(modules, 'ohm-js/src'),
    contents: `export function makeRecipe(...args) {
      require('./semanticsDeferredInit.js')
      return require('./main-kernel.js').makeRecipe(...args)
    }`,
  },
  fflate: {
    resolveDir: modules,
    contents: ['Zip', 'ZipDeflate', 'ZipPassThrough']
      .map(
        (c) =>
          `export function ${c}(...args) { return new (require('./fflate/esm/index.mjs').${c})(...args) }`,
      )
      .join('\n'),
  },
}
/** The plugin of esbuild. Pages have fflate's version for browsers. */
export const libraries = {
  name: 'deferred libraries',
  setup({ initialOptions, onResolve, onLoad }) {
    onResolve(
      { filter: initialOptions.platform === 'node' ? /^(?:ohm-js|fflate)$/ : /^ohm-js$/ },
      ({ path }) => ({
        path,
        namespace: 'deferred',
      }),
    )
    onLoad({ filter: /./, namespace: 'deferred' }, ({ path }) => deferred[path])
  },
}
