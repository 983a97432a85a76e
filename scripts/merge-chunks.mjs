// Merges the chunks of a bundle that are always loaded together. esbuild makes a chunk for each set of entries and dynamic imports that
// reach a module, also if the importer has loaded the module before: `import 'sparsetile/node'` opened a hundred files.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { rolldown } from 'rolldown'

/** The chunk with which programs load the compiler, and the share of its bytes that counts as all of them. */
const COMPILER = /^chunks\/program-[A-Z0-9]{8}\.js$/
const MOST = 0.75

/** The modules of a folder by path, with their static and dynamic imports. */
function importsIn(folder) {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.js'))
  return new Map(
    files.map((file) => {
      const text = readFileSync(join(folder, file), 'utf8')
      const paths = (pattern) =>
        [...text.matchAll(pattern)]
          .map(([, path]) => join(dirname(file), path))
          .filter((f) => existsSync(join(folder, f)))
      return [
        file,
        {
          bytes: text.length,
          static: paths(/\b(?:from|import)"(\.[^"]+)"/g),
          dynamic: paths(/\bimport\("(\.[^"]+)"\)/g),
        },
      ]
    }),
  )
}

/**
 * By module: the entries and dynamic imports that load it. A dynamic import does not load modules that all its importers have loaded.
 * Most loads of the compiler are of all its modules: one that needs `MOST` of its bytes counts as one that needs all.
 */
function loadersIn(imports, entries) {
  const closureOf = (root) => {
    const closure = new Set([root])
    for (const file of closure) for (const f of imports.get(file).static) closure.add(f)
    return closure
  }
  const roots = new Set([...entries, ...[...imports.values()].flatMap((i) => i.dynamic)])
  const closures = new Map([...roots].map((root) => [root, closureOf(root)]))
  const compiler = closures.get([...roots].find((root) => COMPILER.test(root)))
  const bytes = (files) => files.reduce((sum, f) => sum + imports.get(f).bytes, 0)
  const compilerBytes = bytes([...compiler])
  for (const closure of closures.values())
    if (bytes([...closure].filter((f) => compiler.has(f))) > MOST * compilerBytes)
      for (const f of compiler) closure.add(f)
  // Modules that are loaded before each root: at first all, then fewer, to the fixed point.
  const before = new Map([...roots].map((r) => [r, new Set(entries.includes(r) ? [] : imports.keys())]))
  for (let changes = true; changes; ) {
    changes = false
    for (const [root, closure] of closures) {
      const targets = new Set([...closure].flatMap((f) => imports.get(f).dynamic))
      for (const target of targets)
        for (const f of before.get(target)) {
          if (closure.has(f) || before.get(root).has(f)) continue
          before.get(target).delete(f)
          changes = true
        }
    }
  }
  const loaders = (file) => [...roots].filter((r) => closures.get(r).has(file) && !before.get(r).has(file))
  return new Map([...imports.keys()].map((file) => [file, loaders(file)]))
}

/** Merges the chunks in `folder`, whose entries are the files that it contains directly: chunks with the same loaders become one. */
export async function mergeChunks(folder) {
  const imports = importsIn(folder)
  const entries = [...imports.keys()].filter((file) => dirname(file) === '.')
  const loaders = loadersIn(imports, entries)
  const apart = new Set([...entries, ...[...imports.values()].flatMap((i) => i.dynamic)])
  const names = new Map()
  for (const of of loaders.values()) if (!names.has(of.join())) names.set(of.join(), `shared-${names.size}`)
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map((file) => [basename(file, '.js'), join(folder, file)])),
    // The entries of pages import nothing of Node.
    platform: 'neutral',
    external: /^[^./]/,
    treeshake: false,
    preserveEntrySignatures: 'allow-extension',
  })
  const { output } = await bundle.generate({
    chunkFileNames: ({ name }) => `chunks/${name.replace(/-[A-Z0-9]{8}$/, '')}-[hash].js`,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        {
          debugName: 'loaded together',
          name: (id) => {
            const file = relative(folder, id)
            return apart.has(file) ? null : names.get(loaders.get(file).join())
          },
        },
      ],
    },
    // Names stay, for traces.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
  })
  for (const file of imports.keys()) rmSync(join(folder, file))
  for (const { fileName, code } of output) writeFileSync(join(folder, fileName), code)
}
