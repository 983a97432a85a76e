/** The programs of examples/pages and examples/node-service. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compilePlan } from '../../src/bundler/plan-request.ts'
import sparsetile from '../../src/bundler/plugin.ts'
import { Browser } from '../browser/chromium.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const RESULT = [7, 10, 0, 0, 9, 12]

const browser = await Browser.start().catch((e: unknown) => {
  console.log(`skipped: no browser here: ${e instanceof Error ? e.message : String(e)}`)
  return null
})

describe.skipIf(!browser)("pages with script-src 'self'", () => {
  let server: Server
  let address: string
  beforeAll(async () => {
    const pages = `${root}examples/pages`
    const { outputFiles } = await build({
      entryPoints: ['page', 'worker', 'worker-page', 'renderer'].map((name) => `${pages}/${name}.js`),
      plugins: [
        {
          name: 'runtime',
          setup: (api) =>
            api.onResolve({ filter: /^sparsetile\/runtime$/ }, () => ({ path: `${root}src/web/runtime.ts` })),
        },
        sparsetile.esbuild(),
      ],
      bundle: true,
      format: 'esm',
      target: 'es2022',
      outdir: '/',
      outbase: pages,
      write: false,
    })
    const scripts = new Map(outputFiles.map((f) => [f.path, f.text]))
    server = createServer((request, response) => {
      const script = scripts.get(request.url!)
      const html = `<!doctype html><body><script type="module" src="${request.url}.js"></script>`
      response
        .writeHead(200, {
          'content-type': script === undefined ? 'text/html' : 'text/javascript',
          'content-security-policy': "script-src 'self'",
        })
        .end(script ?? html)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => new Promise((resolve) => server.close(resolve)))

  test.each(['page', 'worker-page', 'renderer'])('%s', async (name) => {
    expect(await shownBy(`${address}/${name}`)).toBe(`C = ${RESULT.join(', ')}`)
  })
})

test.skipIf(!browser)('a page with a script tag loads the installed runtime and a plan', async () => {
  const spmm = { file: 'sparsetile/kernels/spmm.spt', kernel: 'spmm', formats: false, deterministic: false }
  const plans = {
    '/gpu.json': await compilePlan({ ...spmm, schedule: 'gpu(8,32)', target: 'webgpu' }),
    '/cpu.json': await compilePlan({ ...spmm, schedule: 'cpu', target: 'cpu' }),
  }
  const server = createServer(({ url = '' }, response) => {
    const plan = plans[url as keyof typeof plans]
    if (plan) return response.end(JSON.stringify(plan.plan))
    const file = url
      .replace('/node_modules/sparsetile/', '')
      .replace('/script-tag', 'examples/pages/script-tag')
    const type = file.endsWith('.js') ? 'text/javascript' : 'text/html'
    return response.writeHead(200, { 'content-type': type }).end(readFileSync(`${root}${file}`))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  expect(await shownBy(`http://127.0.0.1:${port}/script-tag.html`)).toBe(`C = ${RESULT.join(', ')}`)
  await new Promise((resolve) => server.close(resolve))
})

afterAll(() => browser?.close())

/** Opens a page, and returns the text that it shows when it has a result. */
async function shownBy(url: string): Promise<unknown> {
  const evaluate = await browser!.open(url)
  return evaluate(`new Promise((resolve) => {
    const wait = (left) => document.body?.textContent.startsWith('C') || left === 0
      ? resolve(document.body?.textContent) : setTimeout(wait, 50, left - 1)
    wait(200)
  })`)
}

test('a service in Node', async () => {
  const service = spawn(
    process.execPath,
    ['--import', 'sparsetile/register', `${root}examples/node-service/service.js`],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  try {
    const port = await new Promise<string>((resolve, reject) => {
      service.stdout.on('data', (text) => resolve(/\d+/.exec(String(text))![0]))
      service.on('exit', (code) => reject(new Error(`exit ${code}`)))
    })
    const csr = {
      indptr: [0, 2, 2, 3],
      indices: [0, 1, 1],
      values: [1, 2, 3],
      B: [1, 2, 3, 4],
      n: 2,
      d: 2,
    }
    const post = (body: object) =>
      fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: JSON.stringify(body) })
    expect(await (await post(csr)).json()).toEqual(RESULT)
    for (const wrong of [{ values: [1] }, { indices: [0, 9, 1] }, { n: 3 }])
      expect((await post({ ...csr, ...wrong })).status, JSON.stringify(wrong)).toBe(400)
  } finally {
    service.kill()
  }
})
