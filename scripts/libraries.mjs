// Libraries that the bundles of the package and of the playground contain in part.
import { readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

const modules = resolve(import.meta.dirname, '../node_modules')
/**
 * Libraries that few commands use are run when they are first called. The grammar comes ready-made: what reads the texts of
 * grammars is left out.
 */
const deferred = {
  'ohm-js': {
    resolveDir: join(modules, 'ohm-js/src'),
    contents: `export function makeRecipe(...args) {
      const { makeRecipe: made } = require('./main-kernel.js')
      require('./semanticsDeferredInit.js')
      return made(...args)
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

/**
 * Modules of Ohm that grammars from recipes do not use: traces, recipes of grammars, and the checks of a grammar, which is checked when
 * `ohm generateBundles` compiles it, and again by every test of the parser, because tests load the whole library.
 */
const UNUSED = {
  'pexprs-assertAllApplicationsAreValid': 'assertAllApplicationsAreValid',
  'pexprs-assertChoicesHaveUniformArity': 'assertChoicesHaveUniformArity',
  'pexprs-assertIteratedExprsAreNotNullable': 'assertIteratedExprsAreNotNullable',
  'pexprs-isNullable': null,
  'pexprs-outputRecipe': null,
  'pexprs-toArgumentNameList': null,
  'pexprs-toDisplayString': null,
}
const withoutChecks = (file) =>
  file === 'Trace'
    ? 'export class Trace {}'
    : UNUSED[file] === null
      ? ''
      : `import {PExpr} from './pexprs-main.js'\nPExpr.prototype.${UNUSED[file]} = () => {}`

/** The text before the first match, and the replaced rest. Throws if the library has changed, so that the text has no match. */
function cut(text, pattern, rest) {
  const at = text.search(pattern)
  if (at < 0) throw new Error(`no ${pattern} in a library that the bundle contains in part`)
  return `${text.slice(0, at)}${rest(text.slice(at))}`
}
const withoutLine = (text, pattern) => cut(text, pattern, (from) => from.slice(from.indexOf('\n')))

/** Names of operations have no arguments, so that Ohm needs no grammar for their signatures. */
const withoutSignatures = (text) =>
  [/^import operationsAndAttributes/m, /^initPrototypeParser\(/m].reduce(withoutLine, text)

/** Only `freeze` of immer is used, which is one of the utilities in front of the drafts. */
const utilities = (text) => cut(text, /^\/\/ src\/utils\/plugins\.ts/m, () => 'export {freeze}')

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
    onLoad(
      { filter: new RegExp(`ohm-js.src.(?:Trace|${Object.keys(UNUSED).join('|')})\\.js$`) },
      ({ path }) => ({
        contents: withoutChecks(basename(path, '.js')),
        resolveDir: dirname(path),
      }),
    )
    onLoad({ filter: /ohm-js.src.semanticsDeferredInit\.js$/ }, ({ path }) => ({
      contents: withoutSignatures(readFileSync(path, 'utf8')),
      resolveDir: dirname(path),
    }))
    onLoad({ filter: /immer.dist.immer\.mjs$/ }, ({ path }) => ({
      contents: utilities(readFileSync(path, 'utf8')),
      resolveDir: dirname(path),
    }))
  },
}
