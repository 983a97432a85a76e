/** `spt types`: declarations of the plans that a project imports, judged by tsc. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Folder, PROGRAM, spt } from './support.ts'

const folder = new Folder()
const before = process.cwd()
beforeAll(() => process.chdir(folder.path))
afterAll(() => {
  process.chdir(before)
  folder.remove()
})

folder.file('src/mul.spt', `${PROGRAM}\nschedule mul.plain {\n}\n`)
/** Each `@ts-expect-error` must be followed by an error. */
folder.file(
  'src/page.ts',
  `import spmm from 'sparsetile/kernels/spmm.spt?plan&kernel=spmm&schedule=gpu(8,32)'
import mul, { type Inputs } from './mul.spt?plan&target=cpu&schedule=plain'
import tensors from './mul.spt?plan&target=cpu&formats&schedule=plain'
import { csr, dense } from 'sparsetile/runtime/formats'
const fn = await mul.build()
const arrays = { j_indptr: Int32Array.of(0, 1), j_indices: Int32Array.of(0), A: Float32Array.of(1), B: Float32Array.of(1) }
const inputs: Inputs = { ...arrays, alpha: 2 }
export const first: number | undefined = (await fn(inputs)).C[0]
const b = await fn.bind(inputs)
b.set('B', Float32Array.of(2))
export const c: Float32Array = await b.get('C')
const A = csr([1, 1], Int32Array.of(0, 1), Int32Array.of(0))
export const { C } = await (await tensors.build())({ A, B: dense([1, 1], Float32Array.of(1)), alpha: 2 })
export const onGpu = async (device: GPUDevice, B: GPUBuffer) => (await spmm.build(device)).bind({ ...arrays, B })
// @ts-expect-error a size is a number
fn({ ...inputs, d: '64' })
// @ts-expect-error the scalar is missing
fn(arrays)
// @ts-expect-error another type of array
fn({ ...inputs, A: Float64Array.of(1) })
// @ts-expect-error no such input
fn({ ...inputs, X: Float32Array.of(1) })
// @ts-expect-error no such output
export const { D } = await fn(inputs)
// @ts-expect-error C is not an input
b.set('C', Float32Array.of(2))
// @ts-expect-error an array of another type
b.set('j_indices', Float32Array.of(2))
// @ts-expect-error a matrix is not an array
export const wrong = (await tensors.build())({ A: Float32Array.of(1), B: dense([1, 1], Float32Array.of(1)), alpha: 2 })
// @ts-expect-error no such schedule
export * as other from './mul.spt?plan&schedule=plane'
`,
)
const CONFIG = {
  compilerOptions: {
    strict: true,
    module: 'esnext',
    moduleResolution: 'bundler',
    target: 'es2022',
    lib: ['es2023'],
    types: ['@webgpu/types', '@types/node'].map((name) => resolve('node_modules', name)),
    noEmit: true,
    paths: {
      'sparsetile/runtime': [resolve('src/web/runtime.ts')],
      'sparsetile/runtime/formats': [resolve('src/web/formats/formats.ts')],
    },
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  },
  include: ['src'],
}

describe('a project with imports of plans', () => {
  test('an import of a schedule that does not exist is reported, and the others are declared', async () => {
    const { code, err, out } = await spt(['types'])
    expect(err).toContain('plane')
    expect([code, out]).toEqual([1, 'src/plans.d.ts: 3 imports\n'])
  })

  test('tsc accepts right uses of the imports, and rejects wrong ones', () => {
    folder.file('tsconfig.json', JSON.stringify(CONFIG))
    const tsc = spawnSync(process.execPath, [resolve(before, 'node_modules/typescript/bin/tsc'), '-p', '.'])
    expect(String(tsc.stdout)).toBe('')
    expect(tsc.status).toBe(0)
  })

  test('names lead to their declarations in the program', () => {
    const text = readFileSync('src/plans.d.ts', 'utf8').split('\n')
    const map = new SourceMap(JSON.parse(readFileSync('src/plans.d.ts.map', 'utf8')) as SourceMapPayload)
    const start = text.findIndex((l) => l.includes('"*/mul.spt?plan&target=cpu&schedule=plain"'))
    const at = (found: string): unknown => {
      const line = text.findIndex((l, k) => k > start && l.includes(found))
      const { originalSource, originalLine, originalColumn } = map.findEntry(
        line,
        text[line]!.search(/\w+[?:]/),
      ) as never
      const program = readFileSync('src/mul.spt', 'utf8').split('\n')
      return [originalSource, program[originalLine]!.slice(originalColumn)]
    }
    expect(at('readonly B:')).toEqual(['mul.spt', expect.stringMatching(/^B: f32\[jd, f\]/)])
    expect(at('readonly j_indptr:')).toEqual(['mul.spt', expect.stringMatching(/^j {2}= sparse_variable/)])
    expect(at('readonly d?:')).toEqual(['mul.spt', expect.stringMatching(/^d: size/)])
  })

  test('--check fails until the file is written again', async () => {
    folder.file('src/page.ts', "export { default } from './mul.spt?plan&target=cpu'\n")
    expect(await spt(['types', '--check'])).toMatchObject({
      code: 1,
      out: 'src/plans.d.ts is not up to date: spt types\n',
    })
    expect(await spt(['types'])).toMatchObject({ code: 0, out: 'src/plans.d.ts: 1 import\n' })
    expect(await spt(['types', '--check'])).toMatchObject({ code: 0, out: '' })
  })

  test('imports that TypeScript cannot tell apart, or without a path, are errors', async () => {
    folder.file('src/below/mul.spt', PROGRAM.replaceAll('mul', 'other'))
    folder.file('src/below/page.ts', "import './mul.spt?plan&target=cpu'\nimport 'other.spt?plan'\n")
    const { code, err } = await spt(['types', 'src'])
    expect(code).toBe(1)
    expect(err).toContain('are two programs')
    expect(err).toContain("the path of the import 'other.spt?plan'")
  })
})
