/** The package as others see it: what a browser bundles, and what Node imports once it is built. */
import { spawnSync } from 'node:child_process'
import { readFileSync, symlinkSync } from 'node:fs'
import { build } from 'esbuild'
import { afterAll, describe, expect, test } from 'vitest'
import { bundledPackages } from '../../scripts/third-party.mjs'
import { Folder } from '../cli/support.ts'
import { TEXT } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const root = process.cwd()

describe('in a browser', async () => {
  const { outputFiles, metafile, warnings } = await build({
    entryPoints: ['src/index.ts'],
    bundle: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    minify: true,
    write: false,
    metafile: true,
  })
  const text = outputFiles[0]!.text

  test('bundles without anything of Node', () => {
    expect(warnings).toEqual([])
    const imports = Object.values(metafile.inputs).flatMap((i) => i.imports.map((x) => x.path))
    expect(imports.filter((p) => p.startsWith('node:'))).toEqual([])
    // Bindings of loaded plans are verified as kernels of stage I.
    const inputs = Object.keys(metafile.inputs)
    expect(
      inputs.filter((p) => /\/(io|cli|runtime\/cuda|verifiers\/(?!stage1)|interpret)\/|-node\./.test(p)),
    ).toEqual([])
  })

  test.each(['src/prune.ts', 'bench/families.ts'])('so does %s', async (entry) => {
    const made = await build({
      entryPoints: [entry],
      bundle: true,
      platform: 'browser',
      format: 'esm',
      write: false,
    })
    expect(made.warnings).toEqual([])
  })

  test('runs', async () => {
    const path = folder.file('bundle.mjs', text)
    const { load, devices, coords } = (await import(
      /* @vite-ignore */ path
    )) as typeof import('../../src/index.ts')
    const compiled = await (await load(TEXT)).kernel().build(await devices.cpu())
    const tensors = { A: coords([1, 2], [[0], [1]], [3]), B: [5, 7] }
    expect([...(await compiled({ ...tensors, d: 1 })).C!.values!]).toEqual([21])
  })
})

test('the package has the notices of all libraries that it contains', async () => {
  const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const { metafile } = await build({
    entryPoints: ['src/cli/main.ts', 'bench/families.ts'],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outdir: folder.path,
    external: [...Object.keys(peerDependencies), '@resvg/resvg-wasm'],
    write: false,
    metafile: true,
  })
  const notices = readFileSync('dist/lib/THIRD_PARTY.txt', 'utf8')
  const packages = bundledPackages(metafile)
  expect(packages).toEqual(expect.arrayContaining(['fflate', 'ohm-js']))
  for (const name of packages)
    expect(notices).toMatch(new RegExp(`^${name} [\\d.]+ \\(\\S+\\)\n\n(?:.+\n\n)?Copyright .*`, 'm'))
})

test('the changelog begins with the version of the package', () => {
  const [, version] = /^## (\d+\.\d+\.\d+)/m.exec(readFileSync('CHANGELOG.md', 'utf8')) ?? []
  expect(version).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version)
})

test('the package has one copy of the compiler, and no source maps', () => {
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    encoding: 'utf8',
  })
  const [{ size, files }] = JSON.parse(stdout) as [{ size: number; files: { path: string }[] }]
  const paths = files.map((f) => f.path)
  expect(paths.filter((p) => /\.map$|^dist\/(?:src|bench)|bench-suites|^bench\/peers/.test(p))).toEqual([])
  expect(size).toBeLessThan(3_000_000)
  expect(paths.length).toBeLessThan(1500)
})

test('the built browser entry imports nothing of Node', async () => {
  const { metafile } = await build({
    entryPoints: ['dist/lib/index.js'],
    bundle: true,
    platform: 'browser',
    format: 'esm',
    write: false,
    metafile: true,
  })
  const imports = Object.values(metafile.inputs).flatMap((i) => i.imports.map((x) => x.path))
  expect(imports.filter((p) => p.startsWith('node:'))).toEqual([])
})

describe('built, in Node', () => {
  const consumer = (name: string, content: string): string => folder.file(name, content)
  folder.file('package.json', '{ "type": "module" }')
  folder.file('node_modules/.keep', '')
  symlinkSync(root, folder.at('node_modules/sparsetile'))

  test('runs by its name, and ships its kernels', () => {
    const script = consumer(
      'main.js',
      `import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as api from 'sparsetile'
const path = fileURLToPath(import.meta.resolve('sparsetile/kernels/formats.spt'))
const program = await api.load(path)
const compiled = await (await api.load(${JSON.stringify(TEXT)})).kernel().build(await api.devices.cpu())
const tensors = { A: api.coords([1, 2], [[0], [1]], [3]), B: [5, 7] }
const { C } = await compiled({ ...tensors, d: 1 })
console.log(JSON.stringify({ names: Object.keys(api).sort(), formats: program.formats.size, C: [...C.values] }))
`,
    )
    const r = spawnSync(process.execPath, [script], { encoding: 'utf8' })
    expect(r.stderr).toBe('')
    const said = JSON.parse(r.stdout) as { names: string[]; formats: number; C: number[] }
    expect(said.C).toEqual([21])
    expect(said.formats).toBeGreaterThan(0)
    expect(said.names).toEqual([
      'InternalError',
      'SptError',
      'coords',
      'dense',
      'devices',
      'instructionTest',
      'load',
      'loadPlan',
      'packIndices',
      'readTensor',
      'render',
      'scheduleText',
      'stored',
      'typescriptText',
      'unpackIndices',
      'writeTensor',
    ])
  })

  test('prunes by its own name', () => {
    const script = consumer(
      'prune.js',
      `import { elementWise, layersFromValues, prune } from 'sparsetile/prune'
const layers = layersFromValues([{ name: 'w', rows: 1, cols: 4, weights: Float32Array.of(4, 1, 3, 2) }])
console.log([...(await prune(layers, { pattern: elementWise(), sparsity: 0.5 })).masks[0]].join())
`,
    )
    const r = spawnSync(process.execPath, [script], { encoding: 'utf8' })
    expect({ out: r.stdout, err: r.stderr }).toEqual({ out: '1,0,1,0\n', err: '' })
  })

  test('has types that a strict consumer compiles against', () => {
    consumer(
      'main.ts',
      `${['device', 'families', 'notebook', 'prune', 'runtime', 'runtime/formats', 'search'].map((entry) => `import 'sparsetile/${entry}'`).join('\n')}
import { devices, type Kernel, load, type Tensor } from 'sparsetile'
const kernel: Kernel = (await load('k.spt')).kernel().split('i', 8, ['io', 'ii']).bind({ io: 'block.x' })
const compiled = await kernel.build(await devices.cuda({ ordinal: 0 }))
const out: Record<string, Tensor> = await compiled({ d: 1 }, { seed: 1 })
export const shape: readonly number[] | undefined = out.C?.shape
// @ts-expect-error no such thread axis
kernel.bind({ io: 'blok.x' })
`,
    )
    // Without the DOM's types, whose library has had WebGPU's since TypeScript 6, and with all declarations checked.
    const options = {
      module: 'nodenext',
      target: 'es2022',
      lib: ['es2022'],
      strict: true,
      noEmit: true,
      skipDefaultLibCheck: true,
      types: [],
    }
    consumer('tsconfig.json', JSON.stringify({ compilerOptions: options, files: ['main.ts'] }))
    const tsc = `${root}/node_modules/typescript/bin/tsc`
    const r = spawnSync(process.execPath, [tsc, '-p', folder.path], { encoding: 'utf8' })
    expect(r.stdout).toBe('')
    expect(r.status).toBe(0)
  })
})
