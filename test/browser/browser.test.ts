/** The library in a real browser: bundled from its public entry, on the page's own CPU and GPU. */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { blocksOf } from '../docs/chapter.ts'
import { Browser } from './chromium.ts'

const root = new URL('../../', import.meta.url)

/** Where docs/start/tag.html finds the package. */
const INSTALLED = '/start/node_modules/sparsetile/'

/** The page's module, and the kernels it asks for. */
async function serve(): Promise<Server> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('page.ts', import.meta.url))],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    logLevel: 'silent',
  })
  const page =
    '<!doctype html><script type="module">import * as page from "/page.js"; window.page = page</script>'
  const start = await startFiles()
  const typeOf = (path: string): string =>
    path.endsWith('.js') ? 'text/javascript' : path.endsWith('.html') ? 'text/html' : 'text/plain'
  const server = createServer((request, response) => {
    const path = new URL(request.url!, 'http://localhost').pathname
    const [type, body] =
      path === '/'
        ? ['text/html', page]
        : path === '/page.js'
          ? ['text/javascript', outputFiles[0]!.text]
          : /^\/(?:kernels\/[a-z/-]+\.spt|data\/choices\/\w+\.spt)$/.test(path)
            ? ['text/plain', readFileSync(new URL(`.${path}`, root), 'utf8')]
            : path.startsWith(INSTALLED)
              ? ['text/javascript', readFileSync(new URL(path.slice(INSTALLED.length), root), 'utf8')]
              : [typeOf(path), start.get(path)]
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': type }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

/** The files that docs/start/browser.md and the last lesson have their reader write and build, by path. */
async function startFiles(): Promise<ReadonlyMap<string, string>> {
  const filesOf = (page: string, folder: string) =>
    blocksOf(readFileSync(new URL(page, root), 'utf8')).flatMap((b) =>
      b.kind === 'file' ? [[`/${folder}/${b.name}`, b.text] as const] : [],
    )
  const files = new Map(filesOf('docs/start/browser.md', 'start'))
  const at = (path: string) => fileURLToPath(new URL(path, root))
  const bundle = async (contents: string): Promise<string> => {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: at('test/browser') },
      plugins: [
        {
          name: 'package',
          setup(api) {
            api.onResolve({ filter: /^sparsetile(?:\/|$)/ }, ({ path }) => ({
              path: at(path === 'sparsetile' ? 'dist/lib/index.js' : path.slice('sparsetile/'.length)),
            }))
            api.onResolve({ filter: /^\.\/spmv\.spt$/ }, ({ path }) => ({ path, namespace: 'page' }))
            api.onLoad({ filter: /./, namespace: 'page' }, () => ({
              contents: files.get('/start/spmv.spt')!,
              loader: 'text',
            }))
          },
        },
      ],
      loader: { '.spt': 'text' },
      bundle: true,
      format: 'esm',
      platform: 'browser',
      write: false,
      logLevel: 'silent',
    })
    return outputFiles[0]!.text
  }
  return new Map([
    ...files,
    ...filesOf('docs/lessons/12-web-page.md', 'lesson'),
    ['/start/out/main.js', await bundle(files.get('/start/main.js')!)],
    ['/lesson/sparsetile.js', await bundle("export * from 'sparsetile'")],
  ])
}

const browser = await Browser.start().catch((e: unknown) => {
  console.log(`skipped: no browser here: ${e instanceof Error ? e.message : String(e)}`)
  return null
})

/** An integer matrix with an empty row and a row of everything, times a dense one. */
const sample = (() => {
  const [m, n, d] = [9, 6, 5]
  const at = Array.from({ length: m * n }, (_, p) => [Math.floor(p / n), p % n] as const).filter(
    ([i, j]) => i !== 3 && (i === 5 || (i * 7 + j * 3) % 4 === 0),
  )
  const values = at.map((_, e) => (e % 7) - 3)
  const b = Array.from({ length: n * d }, (_, p) => (p % 11) - 5)
  const c = new Array<number>(m * d).fill(0)
  at.forEach(([i, j], e) => {
    for (let f = 0; f < d; f++) c[i * d + f]! += values[e]! * b[j * d + f]!
  })
  return { data: { m, n, d, rows: at.map((p) => p[0]), columns: at.map((p) => p[1]), values, b }, c }
})()

describe.skipIf(!browser)('in a browser', () => {
  let server: Server
  let evaluate: (expression: string) => Promise<unknown>
  const call = (name: string, ...args: readonly unknown[]) =>
    evaluate(`page.${name}(${args.map((a) => JSON.stringify(a)).join(', ')})`)

  beforeAll(async () => {
    server = await serve()
    evaluate = await browser!.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  })
  afterAll(async () => {
    await browser!.close()
    await new Promise((resolve) => server.close(resolve))
  })

  test('the page has a GPU, in software', async () => {
    expect(await evaluate('navigator.gpu.requestAdapter().then((a) => a !== null)')).toBe(true)
  })

  test.each([
    ['cpu', null],
    ['webgpu', null],
    ['webgpu', 'gpu'],
  ] as const)('a kernel fetched with its imports, on %s under %s', async (kind, schedule) => {
    const got = await call('product', kind, '/kernels/spmm.spt', 'spmm', schedule, sample.data)
    expect(got).toMatchObject({ ok: true, problems: [], values: sample.c })
  })

  test.each([
    ['start/index.html', 'y = 201, 30'],
    ['start/tag.html', 'y = 201, 30'],
    ['lesson/lesson.html', 'y = 21, 300, 5400'],
  ])('%s of the documentation', async (page, result) => {
    const shown = await evaluate(`new Promise((resolve, reject) => {
      const frame = document.body.appendChild(Object.assign(document.createElement('iframe'), { src: '/${page}' }))
      const wait = (left) => {
        const text = frame.contentDocument?.body?.innerText?.trim() ?? ''
        if (text !== '') resolve(text)
        else if (left === 0) reject(new Error('the page shows nothing'))
        else setTimeout(wait, 50, left - 1)
      }
      wait(400)
    })`)
    expect(String(shown).split('\n')[0]).toBe(result)
  })

  test('more buffers than the page can bind', async () => {
    const ks = Array.from({ length: 8 }, (_, k) => k)
    const text = `kernel many(m: size, n: size) {
  axis i = dense_fixed(m)
  axis c = dense_fixed(n)
${ks.map((k) => `  axis j${k} = sparse_variable(i, n)\n  buffer A${k}: f32[i, j${k}] in`).join('\n')}
  buffer C: f32[i, c] out
  iterate all [i, c] as SS { C[i, c] = ${ks.map((k) => `A${k}[i, c]`).join(' + ')} }
}`
    const got = (await call('checked', 'webgpu', text, { m: 7, n: 5 })) as { buffers: number }
    expect(got).toMatchObject({ ok: true, problems: [] })
    expect(got.buffers).toBeLessThan(3 * ks.length + 1)
  })

  test('infinities and NaN', async () => {
    const text = `kernel special(n: size) {
  axis i = dense_fixed(n)
  buffer x: f32[i] in
  buffer y: f32[i] out
  buffer z: f32[i] out
  iterate body [i] as S {
    let v = select(i % 3 == 0, inf, select(i % 3 == 1, nan, x[i]))
    y[i] = max(v, -inf)
    z[i] = select(v != v, 1, select(-v == -inf, 2, 3))
  }
}`
    expect(await call('checked', 'webgpu', text, { n: 30 })).toMatchObject({ ok: true, problems: [] })
  })

  test('mistakes are diagnostics there as well', async () => {
    const text =
      'kernel k(n: size) {\n  axis i = dense_fixed(n)\n  buffer y: f32[i] out\n  iterate b [i] as S { y[i] = nowhere }\n}'
    expect(await call('mistakes', text)).toEqual(['check/unknown-name'])
  })
})
