/** Costs of points in several threads: the same as in one. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { chunksOf } from '../../src/search/ranking/index.ts'
import { Folder } from '../cli/support.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { bundled, bundledFile } from './bundled.ts'

property([fc.nat({ max: 120 }), fc.integer({ min: 1, max: 5 })], { numRuns: runs(100) })(
  'each point is in one chunk, chunks have neighbours, and they do not grow',
  (count, threads) => {
    const places = Array.from({ length: count }, (_, k) => k)
    const chunks = [...chunksOf(places, threads)]
    expect(chunks.flat()).toEqual(places)
    const sizes = chunks.map((c) => c.length)
    expect(sizes).toEqual(sizes.toSorted((a, b) => b - a))
    if (count > 0) expect(sizes[0]).toBe(Math.ceil(count / (2 * threads)))
  },
)

const PROGRAM = `
kernel product(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j]  in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f]  out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule product.blocks choose by search {
  rows in 1, 2 .. 32
  cols in 1, 2 .. 32 where (cols <= longest(j) + d)
  by in 0, 2, 4, 8, 16
  only where (cuda)
  reorder (i, f, j)
  split i by rows -> (io, ii)
  split f by cols -> (fo, fi)
  reorder (io, fo, ii, fi, j)
  either { bind io to block.x, fo to block.y, ii to thread.y, fi to thread.x } or
    { bind io to block.x, fo to block.x }
  unroll j by by
}
`

/** Prints whether the costs of two spaces are the same with threads as without, and how many each had. */
const SCRIPT = `
import { readFileSync } from 'node:fs'
import { coords, load } from './src/node.ts'
import { costPrior, points, predictor, sketches } from './src/search.ts'
import { MIN_SHARED, Ranking } from './src/search/ranking/index.ts'
import { rankingOrigin } from './src/search/ranking/origin.ts'
import { Work } from './src/ast/work.ts'
import { property } from '../support/property.ts'

const model = JSON.parse(readFileSync('data/models/cuda.json', 'utf8'))
const product = (await load(${JSON.stringify(PROGRAM)})).kernel('product')
const seed = Number(process.env.SPT_SEED ?? 1)
const [rows, columns] = [[], []]
for (let i = 0; i < 50; i++) for (let j = (i * seed) % 7; j < 40; j += 1 + ((i + seed) % 9)) { rows.push(i); columns.push(j) }
const inputs = { tensors: { A: coords([50, 40], [rows, columns]) }, params: { d: 32 } }
const out = []
for (const space of [
  await product.space('blocks').bind('cuda', { ...inputs.tensors, ...inputs.params }),
  sketches(product, { device: 'cuda' }),
]) {
  const all = []
  for (const p of points(space)) if (all.push(p) === MIN_SHARED) break
  const predict = predictor(product, { device: 'cuda', inputs, model })
  const alone = costPrior(space, predict, { threads: 0 })
  const expected = alone(all)
  let here = 0
  // What is slow here leaves others their share; what they find is computed by them alone.
  const known = new Map(all.map((p, k) => [p, expected[k]]))
  const cost = (p) => { here++; Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20); return known.get(p) }
  const ranking = new Ranking({ cost, origin: () => rankingOrigin(space, predict), threads: 2 })
  let costs
  // Until they have begun.
  for (let tries = 0; tries < 20 && here === tries * all.length; tries++) costs = await new Work().run(ranking.costs(all))
  const others = here % all.length > 0
  const shared = costPrior(space, predict, { threads: 2 })(all)
  const refused = expected.filter((c) => c === Number.POSITIVE_INFINITY).length
  const stop = new AbortController()
  setTimeout(() => stop.abort(), 100)
  const ended = await new Work({ signal: stop.signal }).run(ranking.costs(all)).then(() => 'done', (e) => e.name)
  out.push({ asked: all.length, others, refused, same: [costs, shared].every((c) => c.every((x, k) => Object.is(x, expected[k]))), ended })
}
process.stdout.write(JSON.stringify(out))
process.exit(0)
`

const folder = new Folder()
afterAll(() => folder.remove())

describe('in threads', () => {
  test('costs equal the single-threaded ones, rejections', async () => {
    writeFileSync(folder.at('package.json'), '{ "type": "module" }')
    const main = await bundled(SCRIPT, folder.at('main.js'))
    await bundledFile('src/search/thread-tasks.ts', folder.at('thread-tasks.js'))
    const { stdout } = await promisify(execFile)(process.execPath, [main])
    const [text, sketched] = JSON.parse(stdout) as readonly {
      readonly asked: number
      readonly others: boolean
      readonly refused: number
      readonly same: boolean
      readonly ended: string
    }[]
    for (const r of [text!, sketched!]) {
      expect(r.same).toBe(true)
      expect(r.others).toBe(true)
      expect(r.ended).toBe('AbortError')
    }
    expect(text!.refused).toBeGreaterThan(0)
    expect(text!.refused).toBeLessThan(text!.asked)
  })
})
