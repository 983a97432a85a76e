/** What notebooks show: text that loses and injects nothing, tables, charts and PNG files. */
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { isPng } from '../../scripts/notebooks/check.mjs'
import { coords, load } from '../../src/node.ts'
import { scaleOf } from '../../src/notebook/chart/scale.ts'
import {
  bars,
  best,
  code,
  comparison,
  convergence,
  display,
  generatedCode,
  heatmap,
  lines,
  outcomes,
  parts,
  picture,
  predictions,
  type Row,
  scatter,
  stage,
  steps,
  storage,
  table,
} from '../../src/notebook.ts'
import type { Trial } from '../../src/search/types.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { refusal } from '../support/refusal.ts'
import { wellFormed } from '../support/xml.ts'

/** Printable, with what HTML and XML take for marks. */
const texts = fc.string({ unit: fc.constantFrom(...' <>&"\'`/*ab1_.\n{}|é🌍'), maxLength: 30 })
const words = fc.string({ unit: fc.constantFrom(...'<>&"\'ab1é🌍'), minLength: 1, maxLength: 8 })
const unescaped = (html: string): string =>
  html
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
const count = (names: readonly string[], name: string): number => names.filter((n) => n === name).length

describe('text output', () => {
  property([texts, fc.constantFrom('spt', 'js', 'wgsl', 'cuda', 'c', 'text')], { numRuns: runs(60) })(
    'colours neither lose nor inject text',
    async (text, language) => {
      const shown = code(text, language as 'spt')
      const { 'text/html': html, 'text/plain': plain } = await shown.bundle()
      expect(new Set(wellFormed(html!))).toEqual(
        new Set([...['pre', 'code'], ...(/<span/.test(html!) ? ['span'] : [])]),
      )
      expect(unescaped(html!)).toBe(text.trimEnd())
      expect(plain).toBe(text.trimEnd())
    },
  )

  test('long text is truncated with a note', async () => {
    expect(code('a\nb\nc', 'text', { limit: 2 }).toString()).toBe('a\nb\n… and 1 more lines')
    const isColoured = (language: 'js' | 'text') =>
      code('const x = 1 // y', language).html().includes('<span')
    expect([isColoured('js'), isColoured('text')]).toEqual([true, false])
  })
})

const cells = fc.oneof(
  fc.double({ min: -1e15, max: 1e15, noNaN: true }),
  words,
  fc.boolean(),
  fc.constant(null),
)

describe('tables', () => {
  property([fc.array(fc.dictionary(words, cells, { maxKeys: 4 }), { maxLength: 6 })], {
    numRuns: runs(60),
  })('a cell for each row and column, in HTML and in text', async (rows: Row[]) => {
    const bundle = await table(rows).bundle()
    const columns = new Set(rows.flatMap((r) => Object.keys(r))).size
    const names = wellFormed(bundle['text/html']!)
    expect(count(names, 'th')).toBe(columns)
    expect(count(names, 'td')).toBe(columns * rows.length)
    expect(bundle['text/plain']!.split('\n').length).toBe(rows.length + 1)
  })

  property([fc.array(fc.double({ min: 1e-6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 5 })], {
    numRuns: runs(60),
  })('a number alone keeps its digits', ([x]) => {
    const printed = Number(table([{ x }], { digits: 4 }).toString().split('\n')[1]!.replaceAll(',', ''))
    expect(Math.abs(printed - x!)).toBeLessThanOrEqual(0.5e-3 * x!)
  })

  test('missing values are a dash; rows beyond the limit are counted', () => {
    const shown = table([{ a: 1 }, { a: null }, { a: 3 }], { limit: 2 })
    expect(shown.toString()).toBe('a\n1\n–\n… and 1 more rows')
    expect(shown.html()).toContain('<p>… and 1 more rows</p>')
  })
})

const numbers = fc.double({ min: 1e-6, max: 1e6, noNaN: true })
const rows = fc.array(fc.record({ x: numbers, y: numbers, kind: words }), { minLength: 1, maxLength: 12 })
const logs = fc.constantFrom(undefined, 'x', 'y', 'xy') as fc.Arbitrary<'x' | undefined>
const placed = (svg: string, name: string): number[] =>
  [...svg.matchAll(new RegExp(`<circle[^>]* ${name}="([^"]*)"`, 'g'))].map((m) => Number(m[1]))

describe('charts', () => {
  property([rows, logs], { numRuns: runs(40) })('every row is a mark inside the figure', (data, log) => {
    const { svg } = scatter(data, { x: 'x', y: 'y', color: 'kind', log, diagonal: true })
    expect(count(wellFormed(svg), 'circle')).toBe(data.length)
    for (const at of [...placed(svg, 'cx'), ...placed(svg, 'cy')]) expect(at >= 0 && at <= 2000).toBe(true)
    expect(count(wellFormed(lines(data, { x: 'kind', y: 'y', log: log && 'y' }).svg), 'path')).toBe(1)
    const kinds = new Set(data.map((r) => r.kind)).size
    const drawn = wellFormed(bars(data, { x: 'x', y: 'kind' }).svg)
    expect(count(drawn, 'rect')).toBe(data.length)
    expect(count(wellFormed(heatmap(data, { x: 'kind', y: 'kind', value: 'x' }).svg), 'rect')).toBe(
      data.length,
    )
    expect(count(wellFormed(heatmap(data, { x: 'kind', y: 'kind', value: 'kind' }).svg), 'rect')).toBe(
      data.length + kinds,
    )
  })

  property([fc.array(numbers, { minLength: 2, maxLength: 8 }), fc.boolean(), fc.boolean()], {
    numRuns: runs(60),
  })('an axis keeps order, and its ticks lie on it', (values, log, zero) => {
    const scale = scaleOf(values, 10, 110, { log, zero })
    const at = [...values].sort((a, b) => a - b).map((v) => scale.pixelOf(v))
    expect(at.every((x, k) => k === 0 || x >= at[k - 1]!)).toBe(true)
    for (const t of scale.ticks) expect(t.pixel >= 9.99 && t.pixel <= 110.01).toBe(true)
    expect(scale.ticks.length).toBeGreaterThan(0)
    const apart = Math.max(...values) - Math.min(...values) > 1e-6 * Math.max(...values)
    if (apart && !zero) expect(at.at(-1)! - at[0]!).toBeGreaterThan(90)
  })

  test('a cell of a heatmap is around its text', () => {
    const { svg } = heatmap([{ a: 'x', b: 'y', v: 1 }], { x: 'a', y: 'b', value: 'v' })
    const [, y, height, textY] =
      /<rect[^>]* y="([\d.]+)"[^>]* height="([\d.]+)"[^>]*\/><text[^>]* y="([\d.]+)"/.exec(svg)!.map(Number)
    expect(Math.abs(y! + height! / 2 - textY!)).toBeLessThan(6)
  })

  test('undrawable data are rejected', () => {
    const one = [{ x: 1, y: -1, t: 'a' }]
    expect(refusal(() => lines([], { x: 'x', y: 'y' })).code).toBe('notebook/no-rows')
    expect(refusal(() => lines(one, { x: 'z', y: 'y' })).code).toBe('notebook/no-column')
    expect(refusal(() => lines(one, { x: 'x', y: 't' })).code).toBe('notebook/value')
    expect(refusal(() => lines(one, { x: 'x', y: 'y', log: 'y' })).code).toBe('notebook/log-range')
    expect(refusal(() => bars(one, { x: 'x', y: 't', height: 3 } as never)).code).toBe('api/unknown-option')
    expect(refusal(() => picture('<p>no</p>')).code).toBe('api/argument')
  })
})

test('figures are reproducible PNG files, without SVG next to them', async () => {
  const figure = bars([{ ms: 1, of: 'a' }], { x: 'ms', y: 'of', title: 'A title' })
  const [a, b] = [await figure.png(), await figure.png()]
  expect(isPng(Buffer.from(a))).toBe(true)
  expect(Buffer.from(a).equals(Buffer.from(b))).toBe(true)
  const bundle = await figure.bundle()
  expect(Object.keys(bundle)).toEqual(['image/png', 'text/plain'])
  expect(Buffer.from(bundle['image/png']!, 'base64').equals(Buffer.from(a))).toBe(true)
  const asked = figure as unknown as Record<symbol, () => Promise<unknown>>
  expect(await asked[Symbol.for('Jupyter.display')]!()).toEqual(bundle)
})

test('kernels and formats', async () => {
  const program = await load('sparsetile/kernels/spmv.spt')
  const kernel = program.kernel('spmv').split('i', 8, ['io', 'ii'])
  expect(stage(kernel, 2).toString()).toBe(kernel.show(2).trimEnd())
  expect(steps(kernel).toString()).toBe(kernel.trace.join('\n'))
  expect(generatedCode(kernel, 'js', { limit: 999 }).toString()).toContain(kernel.emit('js')[0]!.text.trim())
  const A = program.format('ell').convert(
    coords(
      [2, 3],
      [
        [0, 0, 1],
        [0, 2, 1],
      ],
      [1, 2, 3],
    ),
  )
  expect(comparison([A]).toString()).toMatch(/^format .*\nell +1 +4 +25 /)
  expect(parts(A).toString()).toMatch(/\n\(all\) +ell +2 +3 +4 /)
  const formats = await load(
    'import "sparsetile/kernels/formats.spt" format split over (i, j) { part lower = csr where (i >= j) part upper = csr where (i < j) }',
  )
  const halves = formats.format('split').convert(coords([2, 2], [[0], [1]], [1]))
  expect(parts(halves).toString()).toMatch(/^lower .*\nupper /m)
  expect(count(wellFormed(storage(A, 'A').svg), 'svg')).toBe(1)
  expect(refusal(() => parts(program as never)).code).toBe('api/argument')
})

const trials = fc.array(
  fc.record({
    ms: fc.option(numbers, { nil: undefined }),
    predicted: fc.option(numbers, { nil: undefined }),
  }),
  { minLength: 1, maxLength: 12 },
)

describe('studies', () => {
  test('the fastest trial is separated from much slower ones, and invalid lists of trials are rejected', async () => {
    const timed = [0.361, 0.354, 113, 164].map((ms, k): Trial => {
      const timing = { median: ms, interval: [ms, ms], samples: [ms] } as const
      return { point: { k }, outcome: { status: 'measured', timing } }
    })
    expect(best(timed).toString().split('\n')[1]).toMatch(/^ +2 +0\.354 +0\.354 +0\.354 +1$/)
    for (const shown of [best, outcomes, predictions])
      expect(refusal(() => shown({ a: timed } as never)).code).toBe('api/argument')
    const log = vi.spyOn(console, 'log').mockImplementation(() => {})
    await display(null as never, best(timed, 1))
    expect(log.mock.calls[0]).toEqual([null])
    log.mockRestore()
  })

  test('outcomes are in the order of their frequency', () => {
    const study = ['a/a', 'b/b', 'c/c', 'b/b', 'c/c', 'b/b'].map(
      (code, k): Trial => ({
        point: { k },
        outcome: { status: 'rejected', code, message: 'no' },
      }),
    )
    const order = outcomes(study).toString().split('\n').slice(1)
    expect(order.map((l) => l.trim().split(/ +/)[1])).toEqual(['b/b', 'c/c', 'a/a'])
  })

  property([trials], { numRuns: runs(40) })(
    'the best come first, the best so far never gets worse',
    (drawn) => {
      const study = drawn.map(({ ms, predicted }, k): Trial => {
        const outcome: Trial['outcome'] =
          ms === undefined
            ? { status: 'rejected', code: 'a/b', message: 'no' }
            : { status: 'measured', timing: { median: ms, interval: [ms, ms], samples: [ms] } }
        return { point: { k }, outcome, predicted }
      })
      const measured = drawn.flatMap((t) => (t.ms === undefined ? [] : [t.ms]))
      const shown = best(study, 20).toString().split('\n').slice(1)
      expect(shown.length).toBe(measured.length)
      const refused = drawn.length - measured.length
      if (refused > 0) expect(outcomes(study).toString()).toMatch(new RegExp(`rejected +a/b +${refused} +no`))
      if (measured.length === 0) {
        expect(refusal(() => convergence(study)).code).toBe('notebook/no-rows')
        return
      }
      const first = shown[0]!.trim().split(/ +/)
      expect(first.at(-1)).toBe(String(drawn.findIndex((t) => t.ms === Math.min(...measured))))
      const { svg } = convergence(study)
      // A dot for each trial, and below all of them, or through them, how low they came so far.
      expect(placed(svg, 'cy').length).toBe(measured.length)
      const heights = [...svg.matchAll(/<path d="M[\d.]+ ([\d.]+)((?:H[\d.]+V[\d.]+)*)"/g)].flatMap(
        ([, y, rest]) => [y!, ...[...rest!.matchAll(/V([\d.]+)/g)].map((m) => m[1]!)].map(Number),
      )
      expect(heights.length).toBeGreaterThan(0)
      expect(heights.every((y, k) => k === 0 || y >= heights[k - 1]!)).toBe(true)
      expect(Math.abs(heights.at(-1)! - Math.max(...placed(svg, 'cy')))).toBeLessThan(0.1)
      expect(count(wellFormed(convergence({ a: study, b: [] }).svg), 'path')).toBe(1)
      const both = drawn.filter((t) => t.ms !== undefined && t.predicted !== undefined).length
      if (both > 0) expect(count(wellFormed(predictions(study).svg), 'circle')).toBe(both)
    },
  )
})
