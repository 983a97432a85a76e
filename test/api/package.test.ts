/** The package as others see it: what a browser bundles, and what Node imports once it is built. */
import { spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { afterAll, describe, expect, test } from 'vitest'
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
    const inputs = Object.keys(metafile.inputs)
    expect(inputs.filter((p) => /\/(io|cli|runtime\/cuda|verifiers|interpret)\/|-node\./.test(p))).toEqual([])
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

  test('stays small', () => {
    const size = gzipSync(text, { level: 9 }).length
    // 543.2 kB with recomputed sums in private memory and hints of steps to type; 534.0 kB with kernels that are rebuilt on a new device and forgotten ones (1.2 kB); 532.8 kB with plain schedules of software adapters and sums without a fixed order (0.9 kB); 526.0 kB with operands of several tiles and pairs of halves (1 kB); 520.6 kB with parts that are found in runs by conditions (2.2 kB); 518.1 kB with formats found in runs that have values of their own, and graphs that tell what runs end with (2.8 kB); 515.3 kB with structures that several tensors and iterations share, temporaries by position and reasons of refusals (3.3 kB); 512.0 kB with consumers of what several loops make and tiles of which each thread has its own; 509.3 kB with sparsity attributes and masks (4 kB); 504.1 kB with schedules that are chosen in each run (4.2 kB), lists in one loop and bounds of bits; 497.7 kB with one rule for what maps, keys and inverses read and compute, building in three nests with schedules and capacity, and `covered` (10.5 kB); 487.2 kB with outputs that stay on the device (2.2 kB); 480.5 kB with permutable dimensions and their micro-tiles (3 kB); 475.5 kB with pipelines that go on from tile to tile, 471 kB where several kernels share what is bound, lists and sets of their formats too; 457 kB with gathered tiles (narrow indices, lists, join) and ready-made arrays told by names, 11 of them the cost model, much of it the grammar machinery and schedules.
    expect(size).toBeLessThan(544_000)
  })

  test('runs', async () => {
    const path = folder.file('bundle.mjs', text)
    const { load, devices, coords } = (await import(
      /* @vite-ignore */ path
    )) as typeof import('../../src/index.ts')
    const compiled = await (await load(TEXT)).kernel().compile(await devices.cpu())
    const tensors = { A: coords([1, 2], [[0], [1]], [3]), B: [5, 7] }
    expect([...(await compiled.run({ tensors, params: { d: 1 } })).C!.values!]).toEqual([21])
  })
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
const compiled = await (await api.load(${JSON.stringify(TEXT)})).kernel().compile(await api.devices.cpu())
const tensors = { A: api.coords([1, 2], [[0], [1]], [3]), B: [5, 7] }
const { C } = await compiled.run({ tensors, params: { d: 1 } })
console.log(JSON.stringify({ names: Object.keys(api).sort(), formats: program.formats.size, C: [...C.values] }))
`,
    )
    const r = spawnSync(process.execPath, [script], { encoding: 'utf8' })
    expect(r.stderr).toBe('')
    const said = JSON.parse(r.stdout) as { names: string[]; formats: number; C: number[] }
    expect(said.C).toEqual([21])
    expect(said.formats).toBeGreaterThan(0)
    expect(said.names).toEqual([
      'CompiledChoice',
      'CompiledKernel',
      'ConvertedTensor',
      'InternalError',
      'Kernel',
      'Part',
      'PreparedKernel',
      'ResidentParts',
      'SptError',
      'SptFormat',
      'SptProgram',
      'Workspace',
      'convert',
      'convertFor',
      'convertPlan',
      'coords',
      'dense',
      'devices',
      'formatOf',
      'instructionTest',
      'load',
      'measure',
      'packIndices',
      'prepareResident',
      'readTensor',
      'releaseConversions',
      'render',
      'resident',
      'scheduleText',
      'stored',
      'typescriptText',
      'unpackIndices',
      'useCostModel',
      'writeTensor',
    ])
  })

  test('prunes by its own name', () => {
    const script = consumer(
      'prune.js',
      `import { elementWise, layersOf, prune } from 'sparsetile/prune'
const layers = layersOf([{ name: 'w', rows: 1, cols: 4, weights: Float32Array.of(4, 1, 3, 2) }])
console.log([...(await prune(layers, { pattern: elementWise(), sparsity: 0.5 })).masks[0]].join())
`,
    )
    const r = spawnSync(process.execPath, [script], { encoding: 'utf8' })
    expect({ out: r.stdout, err: r.stderr }).toEqual({ out: '1,0,1,0\n', err: '' })
  })

  test('has types that a strict consumer compiles against', () => {
    consumer(
      'main.ts',
      `import { devices, type Kernel, load, type Tensor } from 'sparsetile'
const kernel: Kernel = (await load('k.spt')).kernel().split('i', 8, ['io', 'ii']).bind({ io: 'block.x' })
const compiled = await kernel.compile(await devices.cuda({ ordinal: 0 }))
const out: Record<string, Tensor> = await compiled.run({ params: { d: 1 }, seed: 1 })
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
