/** Imports of plans through bundlers, in Node, and in a page that forbids `eval`. */
import { spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { planRequest } from '../../src/bundler/plan-request.ts'
import sparsetile from '../../src/bundler/plugin.ts'
import { Browser } from '../browser/chromium.ts'
import { Folder } from '../cli/support.ts'
import { ownDevice } from '../web/own-device.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = new Folder()
afterAll(() => folder.remove())
folder.file('package.json', '{ "type": "module" }')
folder.file('node_modules/.keep', '')
symlinkSync(root, folder.at('node_modules/sparsetile'))

/** C = A B in integers, with an empty row. */
const CSR = `{ j_indptr: Int32Array.of(0, 2, 2, 3), j_indices: Int32Array.of(0, 1, 1), A: Float32Array.of(1, 2, 3),
  B: Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8), m: 3, n: 2, d: 4 }`
const PRODUCT = [11, 14, 17, 20, 0, 0, 0, 0, 15, 18, 21, 24]

const page = (query: string, device: string): string => `
import spmm from 'sparsetile/kernels/spmm.spt?plan&kernel=spmm&${query}'
export const run = async (gpu) => {
  const fn = await spmm.build(${device})
  return [...(await fn(${CSR})).C]
}
globalThis.run = run
try { globalThis.evaluated = Reflect.construct(Function, ['return 1'])() } catch (e) { globalThis.evaluated = e.name }
`
const onGpu = folder.file('gpu.js', page('schedule=gpu(8,32)', 'gpu'))
const onCpu = folder.file('cpu.js', page('target=cpu&schedule=cpu(4)', ''))

/** y = A x with two schedules, one of which is selected by the longest row. */
folder.file(
  'choice.spt',
  `kernel product(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[jd] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
}
schedule product.plain {
}
schedule product.tiled {
  split sum.i by 2
}
schedule product.pick choose {
  when (longest(j) <= 1) plain
  otherwise tiled
}
`,
)

/** The runtime from the sources, so that no build is needed. */
const runtime = {
  name: 'runtime',
  setup(api: import('esbuild').PluginBuild) {
    api.onResolve({ filter: /^sparsetile\/runtime/ }, () => ({ path: `${root}src/web/runtime.ts` }))
  },
}
async function bundled(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    plugins: [runtime, sparsetile.esbuild()],
    bundle: true,
    minify: true,
    format: 'esm',
    write: false,
    logLevel: 'silent',
    absWorkingDir: folder.path,
  })
  return outputFiles[0]!.text
}

const imported = async (text: string): Promise<{ run(gpu?: GPUDevice): Promise<number[]> }> =>
  import(`data:text/javascript,${encodeURIComponent(text)}`)

test('esbuild: a plan for each device, with the product of the compiler', async () => {
  const gpu = await ownDevice()
  expect(await (await imported(await bundled(onGpu))).run(gpu)).toEqual(PRODUCT)
  gpu.destroy()
  const text = await bundled(onCpu)
  // Places in the program, without the folder of the build.
  expect(text).toContain('"kernels/spmm.spt:')
  expect(text).not.toContain(root)
  expect(text).not.toContain('new Function')
  expect(await (await imported(text)).run()).toEqual(PRODUCT)
})

test('a schedule that selects by data gives a family of plans', async () => {
  const entry = folder.file(
    'family.js',
    `import product from './choice.spt?plan&target=cpu&schedule=pick'
export const run = async () => {
  const fn = await product.build()
  const of = async (offsets, longest) => [...(await fn({ j_indptr: Int32Array.from(offsets), j_indices: Int32Array.of(0, 1),
    A: Float32Array.of(2, 3), x: Float32Array.of(5, 7), m: 2, n: 2, 'longest(j)': longest })).y]
  return [product.plan.plans.length, ...(await of([0, 1, 2], 1)), ...(await of([0, 0, 2], 2))]
}`,
  )
  const text = await bundled(entry)
  expect(text).not.toContain('new Function')
  expect(await (await imported(text)).run()).toEqual([2, 10, 21, 0, 31])
})

test('Vite and Rolldown', async () => {
  const { build: viteBuild } = await import('vite')
  const { rolldown } = await import('rolldown')
  const alias = { 'sparsetile/runtime': `${root}src/web/runtime.ts` }
  const made = await viteBuild({
    root: folder.path,
    configFile: false,
    logLevel: 'silent',
    plugins: [sparsetile.vite()],
    resolve: { alias },
    build: { write: false, lib: { entry: onCpu, formats: ['es'], fileName: 'cpu' } },
  })
  const [{ output }] = made as unknown as [{ output: [{ code: string }] }]
  expect(await (await imported(output[0].code)).run()).toEqual(PRODUCT)
  const bundle = await rolldown({ input: onCpu, plugins: [sparsetile.rolldown()], resolve: { alias } })
  const chunks = await bundle.generate({ format: 'es' })
  expect(await (await imported(chunks.output[0].code)).run()).toEqual(PRODUCT)
})

describe('mistakes are errors of the bundler', () => {
  const errorOf = async (text: string): Promise<{ text: string; file?: string; line?: number }> => {
    const result = await build({
      entryPoints: [folder.file('entry.js', text)],
      plugins: [runtime, sparsetile.esbuild()],
      bundle: true,
      format: 'esm',
      write: false,
      logLevel: 'silent',
    }).catch((e: { errors: { text: string; location: { file: string; line: number } | null }[] }) => e)
    const [first] = 'errors' in result ? result.errors : []
    return {
      text: first?.text ?? '',
      ...(first?.location && { file: first.location.file, line: first.location.line }),
    }
  }
  folder.file(
    'wrong.spt',
    'kernel k(n: size) {\n  axis i = dense_fixed(n)\n  buffer y: f32[i] out\n  iterate b [i] as S { y[i] = nowhere }\n}\n',
  )

  test('with file and line of the program', async () => {
    const { text, line, file } = await errorOf("import k from './wrong.spt?plan'")
    expect(text).toContain('nowhere')
    expect([line, file?.endsWith('wrong.spt')]).toEqual([4, true])
  })

  test.each([
    ["import k from 'sparsetile/kernels/spmm.spt?plan&schedule=gup'", 'kernel spmm has no schedule gup'],
    ["import k from 'sparsetile/kernels/spmm.spt?plan&schedule=gpu(8'", 'is not a schedule'],
    ["import k from 'sparsetile/kernels/spmm.spt?plan&kernel=spnn'", 'no kernel spnn'],
    ["import k from 'sparsetile/kernels/spmm.spt?plan&targte=cpu'", 'option targte'],
    ["import k from 'sparsetile/kernels/spmm.spt?plan&target=tpu'", 'target tpu'],
    ["import k from './wrong.spt?plan&kernel=k&kernel=l'", 'option kernel twice'],
    ["import k from './wrong.spt?plan&formats=0'", 'option formats a value'],
    ["import k from './nowhere.spt?plan'", 'nowhere.spt'],
  ])('%s', async (text, message) => {
    expect((await errorOf(text)).text).toContain(message)
  })

  test('a request', () => {
    expect(planRequest('./x.spt?plan&schedule=gpu(8,32)')).toEqual({
      file: './x.spt',
      kernel: undefined,
      schedule: 'gpu(8,32)',
      target: 'webgpu',
      formats: false,
      deterministic: false,
    })
    expect(() => planRequest('./x.spt?plan&kernl=k')).toThrow(SptError)
  })
})

const browser = await Browser.start().catch((e: unknown) => {
  console.log(`skipped: no browser here: ${e instanceof Error ? e.message : String(e)}`)
  return null
})

describe.skipIf(!browser)("in a page with script-src 'self'", () => {
  let server: Server
  let address: string
  beforeAll(async () => {
    const files: Record<string, string> = {
      '/gpu.js': await bundled(onGpu),
      '/cpu.js': await bundled(onCpu),
    }
    server = createServer((request, response) => {
      const script = files[request.url!]
      const [type, body] =
        script === undefined
          ? [
              'text/html',
              `<!doctype html><script type="module" src="${request.url === '/' ? '/cpu.js' : '/gpu.js'}"></script>`,
            ]
          : ['text/javascript', script]
      response
        .writeHead(200, { 'content-type': type, 'content-security-policy': "script-src 'self'" })
        .end(body)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    await browser!.close()
    await new Promise((resolve) => server.close(resolve))
  })

  test.each(['/', '/page'])('%s', async (path) => {
    const evaluate = await browser!.open(`${address}${path}`)
    expect(await evaluate('evaluated')).toBe('EvalError')
    expect(await evaluate('run()')).toEqual(PRODUCT)
  })
})

test('Node, by `node --import sparsetile/register`', () => {
  const script = folder.file(
    'node.js',
    `${page('target=cpu', '')}\nconsole.log(JSON.stringify(await run()))\n`,
  )
  const ran = spawnSync(process.execPath, ['--import', 'sparsetile/register', script], {
    cwd: folder.path,
    encoding: 'utf8',
  })
  expect([ran.stdout, ran.stderr]).toEqual([`${JSON.stringify(PRODUCT)}\n`, ''])
  const formats = folder.file(
    'formats.js',
    `import product from './choice.spt?plan&formats&target=cpu&schedule=tiled'
import { csr, dense } from 'sparsetile/runtime/formats'
const A = csr([2, 2], Int32Array.of(0, 1, 2), Int32Array.of(0, 1), Float32Array.of(2, 3))
console.log(...(await (await product.build())({ A, x: dense([2], Float32Array.of(5, 7)) })).y.values)\n`,
  )
  const converted = spawnSync(process.execPath, ['--import', 'sparsetile/register', formats], {
    cwd: folder.path,
    encoding: 'utf8',
  })
  expect([converted.stdout, converted.stderr]).toEqual(['10 21\n', ''])
  const wrong = folder.file('wrong.js', "import k from './wrong.spt?plan'\n")
  const failed = spawnSync(process.execPath, ['--import', 'sparsetile/register', wrong], {
    cwd: folder.path,
    encoding: 'utf8',
  })
  expect(failed.stderr).toContain('nowhere')
  expect(failed.stderr).toContain('wrong.spt:4')
})
