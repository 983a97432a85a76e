// Times of the playground's cold start in a headless Chromium: from navigation to the editor, and to the verified result.
//   npm run playground && node playground/cold-start.mjs [runs]
// Each run has a new browser with an empty cache. CPU time is that of all processes of the browser, without its own start.
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { servePlayground } from './build.mjs'

const root = resolve(import.meta.dirname, '..')
const { outputFiles } = await build({
  entryPoints: [join(root, 'test/browser/chromium.ts')],
  bundle: true,
  platform: 'node',
  format: 'esm',
  write: false,
  plugins: [
    {
      name: 'the installed browser',
      setup: ({ onResolve }) =>
        onResolve({ filter: /^@sparticuz\/chromium$/ }, () => ({
          path: import.meta.resolve('@sparticuz/chromium'),
          external: true,
        })),
    },
  ],
})
const { Browser } = await import(
  `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`
)

/** CPU milliseconds of this process's descendants so far. */
function childrenCpu() {
  const stats = readdirSync('/proc')
    .filter((p) => /^\d+$/.test(p))
    .flatMap((pid) => {
      try {
        const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /, '')
          .split(' ')
        return [
          { pid: Number(pid), parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) },
        ]
      } catch {
        return []
      }
    })
  const family = new Set([process.pid])
  for (let size = 0; size !== family.size; ) {
    size = family.size
    for (const s of stats) if (family.has(s.parent)) family.add(s.pid)
  }
  return (
    10 * stats.filter((s) => s.pid !== process.pid && family.has(s.pid)).reduce((sum, s) => sum + s.ticks, 0)
  )
}

const server = await servePlayground()
const url = `http://127.0.0.1:${server.address().port}/`
const rows = []
for (let run = 0; run < Number(process.argv[2] ?? 5); run++) {
  const browser = await Browser.start()
  await browser.open('about:blank')
  const before = childrenCpu()
  const { evaluate } = await browser.page(url)
  const marks = `performance.getEntriesByType('mark').map((m) => [m.name, Math.round(m.startTime)])`
  let seen = []
  const end = Date.now() + 60_000
  while (!seen.some(([name]) => name === 'result')) {
    await new Promise((done) => setTimeout(done, 50))
    seen = await evaluate(marks)
    if (Date.now() > end)
      throw new Error(`No result after 60 s; is the page built (npm run playground)? ${seen}`)
  }
  rows.push({ ...Object.fromEntries(seen), 'CPU ms': childrenCpu() - before })
  await browser.close()
}
server.close()
console.table(rows)
const median = (name) => rows.map((r) => r[name]).sort((a, b) => a - b)[Math.floor(rows.length / 2)]
console.log(
  `median: editor ${median('editor')} ms, verified ${median('result')} ms, CPU ${median('CPU ms')} ms`,
)
