/** A page of Vite's server follows changes of the program and of the files that it imports, also after an error. */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import sparsetile from '../../src/bundler/plugin.ts'
import { Browser } from '../browser/chromium.ts'
import { Folder } from '../cli/support.ts'
import { TIME_LIMIT } from '../support/time-limit.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = new Folder()
afterAll(() => folder.remove())

const browser = await Browser.start().catch((e: unknown) => {
  console.log(`skipped: no browser here: ${e instanceof Error ? e.message : String(e)}`)
  return null
})
afterAll(() => browser?.close())

const scaled = (value: string): string => `kernel scaled(n: size) {
  axis i = dense_fixed(n)
  buffer x: f32[i] in
  buffer y: f32[i] out
  iterate scale [i] as S { y[i] = ${value} }
}
`

test.skipIf(!browser)(
  'Vite updates the page',
  async () => {
    const { createServer } = await import('vite')
    const library = folder.file('library.spt', scaled('x[i] * 2.0'))
    folder.file('page.spt', 'import { scaled } from "./library.spt"\n')
    folder.file('index.html', '<!doctype html><body><script type="module" src="/page.js"></script>')
    folder.file(
      'page.js',
      `import scaled from './page.spt?plan&kernel=scaled&target=cpu'
     const fn = await scaled.build()
     document.body.textContent = (await fn({ x: Float32Array.of(1, 2, 3) })).y.join()`,
    )
    const server = await createServer({
      root: folder.path,
      configFile: false,
      logLevel: 'silent',
      plugins: [sparsetile.vite()],
      resolve: { alias: { 'sparsetile/runtime': `${root}src/web/runtime.ts` } },
      optimizeDeps: { noDiscovery: true },
      server: { host: '127.0.0.1', port: 0, fs: { strict: false } },
    })
    try {
      await server.listen()
      const { evaluate } = await browser!.page(server.resolvedUrls!.local[0]!)
      const shown = async (expression: string, value: unknown): Promise<void> => {
        await expect.poll(() => evaluate(expression), { timeout: 60_000 }).toBe(value)
      }
      await shown('document.body.textContent', '2,4,6')
      writeFileSync(library, scaled('x[i] * 3.0'))
      await shown('document.body.textContent', '3,6,9')
      writeFileSync(library, scaled('nowhere'))
      await shown(
        'document.querySelector("vite-error-overlay")?.shadowRoot.textContent.includes("there is no nowhere")',
        true,
      )
      writeFileSync(library, scaled('x[i] * 4.0'))
      await shown('document.body.textContent', '4,8,12')
    } finally {
      await server.close()
    }
  },
  TIME_LIMIT,
)
