/** `spt prune --predict`: what the cost model says of a kernel with each layer's weights, all and kept. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { safetensorsChunks, writeFile } from '../../src/io/index.ts'
import { coords, load } from '../../src/node.ts'
import { layersFromValues, type Mask, prune, tileElementWise, tileWise } from '../../src/prune.ts'
import { predictor } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { Folder, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

interface Layer {
  readonly name: string
  readonly rows: number
  readonly cols: number
  readonly weights: Float32Array
}

const layer = fc
  .record({ rows: fc.integer({ min: 2, max: 20 }), cols: fc.integer({ min: 2, max: 20 }), seed: fc.nat(100) })
  .map(({ rows, cols, seed }) => ({
    rows,
    cols,
    weights: Float32Array.from({ length: rows * cols }, (_, i) => ((i * 37 + seed * 11) % 101) - 50),
  }))

async function written(list: readonly Layer[]): Promise<string> {
  const path = folder.at('m.safetensors')
  const parts = list.map(({ name, rows, cols, weights }) => ({
    name,
    type: 'F32',
    shape: [rows, cols],
    chunks: () => [new Uint8Array(weights.buffer)],
  }))
  await writeFile(path, safetensorsChunks(parts))
  return path
}

const held = (mask: Mask, { rows, cols }: Layer) => {
  const at: [number, number][] = []
  for (let r = 0; r < rows; r++) for (let c = 0; c < cols; c++) if (mask[r * cols + c] === 1) at.push([r, c])
  return coords([rows, cols], [at.map(([r]) => r), at.map(([, c]) => c)])
}

const CASES = [
  ['tile-wise', 'cpu', 'tw --granularity 4', tileWise({ granularity: 4 })],
  [
    'tile-element-wise',
    'tew_cpu',
    'tew --granularity 4 --delta 0.1',
    tileElementWise({ granularity: 4, delta: 0.1 }),
  ],
] as const

property(
  [
    fc.array(layer, { minLength: 1, maxLength: 3 }),
    fc.constantFrom(...CASES),
    fc.integer({ min: 1, max: 500 }),
  ],
  { numRuns: runs(10) },
)(
  'times are those of the cost model, for included layers',
  async (drawn, [file, schedule, text, pattern], m) => {
    const list = drawn.map((l, k) => ({ ...l, name: `l${k}` }))
    const argv = ['prune', await written(list), '--pattern', ...text.split(' '), '--sparsity', '0.5']
    const excluded = list.length > 1 ? ['--exclude', 'l1'] : []
    const asked = ['--predict', `kernels/${file}.spt`, '--kernel', 'pruned_linear', '--schedule', schedule]
    const sizes = ['--device', 'cpu', '--size', `m=${m}`]
    const out = folder.at('out')
    const ran = await spt([...argv, ...excluded, ...asked, ...sizes, '--json', '--out', out])
    // Small layers may lose nearly all elements, which is a warning.
    const others = ran.err.replaceAll(/warning: layer l\d keeps .*\n += hint: .*\n/g, '')
    expect([ran.code, others]).toEqual([0, ''])
    const { out: _, ...told } = JSON.parse(ran.out)
    expect(JSON.parse(readFileSync(`${out}/report.json`, 'utf8'))).toEqual(told)
    expect(told.prediction).toMatchObject({
      kernel: 'pruned_linear',
      device: 'cpu',
      schedules: [`${schedule}(g = 4)`],
    })

    const exclude = list.length > 1 ? ['l1'] : []
    const { masks, rest } = await prune(layersFromValues(list), { pattern, sparsity: 0.5, exclude })
    const kernel = (await load(`kernels/${file}.spt`)).kernel('pruned_linear')
    list.forEach((l, k) => {
      const time = (all: Mask, tiles: Mask): number => {
        const set = file === 'tile-wise' ? {} : { kept: held(tiles, l) }
        const inputs = { tensors: { W: held(all, l), ...set }, params: { m } }
        return predictor(kernel, { device: 'cpu', inputs })(kernel.schedule(schedule, 4)).milliseconds
      }
      const whole = masks[k]!.map(() => 1)
      const both = masks[k]!.map((x, e) => x | (rest?.[k]?.[e] ?? 0))
      const expected = exclude.includes(l.name)
        ? null
        : { before: time(whole, whole), after: time(both, masks[k]!), reason: null }
      expect(told.layers[k].predicted).toEqual(expected)
    })
  },
)

test('the schedule uses the tile size of the pattern by default', async () => {
  const weights = Float32Array.from({ length: 32 * 32 }, (_, i) => ((i * 37) % 101) - 50)
  const path = await written([{ name: 'a', rows: 32, cols: 32, weights }])
  const predicted = async (...more: string[]) => {
    const argv = ['prune', path, '--pattern', 'tw', '--granularity', '8', '--sparsity', '0.5', '--json']
    const asked = ['--predict', 'kernels/tile-wise.spt', '--kernel', 'pruned_linear', '--device', 'cpu']
    const { code, out } = await spt([...argv, ...asked, '--size', 'm=64', ...more])
    expect(code).toBe(0)
    return JSON.parse(out).layers[0].predicted
  }
  const own = await predicted()
  expect(own).toEqual(await predicted('--schedule', 'cpu(8)'))
  expect(own).toEqual(await predicted('--schedule', 'auto'))
  expect(await predicted('--schedule', 'cpu(128)')).toEqual(await predicted('--schedule', 'cpu(g = 128)'))
  expect(own.after).not.toBe((await predicted('--schedule', 'cpu(128)')).after)
  expect(await predicted('--schedule', 'cpu(cols = 16)')).toEqual(await predicted('--schedule', 'cpu(8, 16)'))
  expect((await predicted('--size', 'n=32')).after).toBe(own.after)
})

test('a missing prediction is explained once', async () => {
  const weights = Float32Array.from({ length: 256 }, (_, i) => ((i * 37) % 101) - 50)
  const path = await written(['a', 'b'].map((name) => ({ name, rows: 16, cols: 16, weights })))
  const call = async (pattern: string, ...more: string[]): Promise<string[]> => {
    const argv = ['prune', path, '--pattern', pattern, '--granularity', '4', '--sparsity', '0.5']
    const { code, out } = await spt([...argv, '--kernel', 'pruned_linear_f16', ...more])
    expect(code).toBe(0)
    return out.split('\n').filter((l) => /no time|none/.test(l))
  }
  const cores = await call(
    'tw',
    '--predict',
    'kernels/tile-wise.spt',
    '--size',
    'm=128',
    '--device',
    'cuda',
    '--capability',
    '9.0',
  )
  expect(cores.map((l) => l.includes('none → none'))).toEqual([true, true, false])
  expect(cores[2]).toMatch(/^no time: wgmma\(.*\) uses instructions/)
  // Three of four are no weights of the format.
  const dense = ['--predict', 'kernels/tile-vector-wise.spt', '--schedule', 'tvw_gpu', '--size', 'm=128']
  const whole = await call('tvw', ...dense)
  expect(whole.map((l) => /none → [\d.]+ ms/.test(l))).toEqual([true, true, false])
  expect(whole[2]).toMatch(/^no time: axis q has the width 2/)
})

test('impossible layer sizes are rejected before anything is written', async () => {
  const weights = Float32Array.from({ length: 32 * 16 }, (_, i) => ((i * 37) % 101) - 50)
  const path = await written([
    { name: 'a', rows: 32, cols: 16, weights },
    { name: 'b', rows: 16, cols: 32, weights },
  ])
  const out = folder.at('refused')
  const call = async (kernel: string, ...more: string[]) => {
    const argv = ['prune', path, '--pattern', 'tw', '--granularity', '8', '--sparsity', '0.5', '--out', out]
    const asked = ['--predict', 'kernels/tile-wise.spt', '--kernel', kernel]
    const ran = await spt([...argv, ...asked, ...more])
    return { ...ran, written: existsSync(out) }
  }
  const onCpu = (...sizes: string[]) =>
    call('pruned_linear', '--device', 'cpu', ...sizes.flatMap((s) => ['--size', s]))
  for (const [sizes, why] of [
    [['m=-1'], 'error[bind/size-range]: size m is -1'],
    [['m=inf'], 'error[bind/size-range]: size m is Infinity'],
    [['m=nan'], 'error[bind/size-range]: size m is NaN'],
    [['m=1.5'], 'error[bind/size-range]: size m is 1.5'],
    [['m=4294967296'], 'error[bind/size-range]: size m is 4294967296'],
    [[], 'error[bind/missing-size]: missing size m of kernel pruned_linear'],
    [['m=8', 'n=3'], 'error[bind/size-mismatch]: size n is 3 by the value given, and 32 by dimension 0 of W'],
    [['m=8', 'k=3'], 'error[bind/size-mismatch]: size k is 3 by the value given, and 16 by dimension 1 of W'],
  ] as const) {
    const { code, err, written } = await onCpu(...sizes)
    expect([code, err, written]).toEqual([1, expect.stringContaining(why), false])
  }
  // Some layers are of these sizes: of the others it is said.
  const some = await onCpu('m=8', 'n=32')
  expect([some.code, some.written]).toEqual([0, true])
  expect(some.out).toContain('no time: size n is 32 by the value given, and 16 by dimension 0 of W')
  rmSync(out, { recursive: true })
  // What is not known of the device, with what to give.
  const cuda = await call('pruned_linear_f16', '--size', 'm=128', '--device', 'cuda')
  expect([cuda.code, cuda.written]).toEqual([1, false])
  expect(cuda.err).toContain('error[choose/unknown-capability]')
  expect(cuda.err).toContain('--capability 9.0 on the command line')
})
