/**
 * Conversion of a matrix that lives on a device, next to the host's:
 *
 *     node dist/bench/convert.js --device cpu|cuda|webgpu [--matrix FILE.mtx|power-law] [--scale S]
 *       [--to hyb,bsr,sr_bcrs,sell] [--repeats 5] [--host no] [--check no] [--json PATH]
 *       [--variant 9:256x9,7:1024] [--nodes N --edges E] [--count yes]
 *       [--like cpu|cuda|webgpu] [--fused N]
 *
 * A target may have arguments, `bsr(4)`. Variants are ways to sort: the bits of a digit, then the threads of a block
 * and the entries of each (an odd number), or the entries that single threads deal out; left out: the device's own.
 * `--like`: columns are worked on as on that kind of device, `--fused` says how many launches become one at most.
 * `--scale` multiplies the nodes and edges of the power-law graph, `--nodes` and `--edges` set them. `--count` prints
 * what each conversion asks of the device (commands, transfers, launches by operation) and the host's own time. The source is CSR with f32 values; times are medians
 * in milliseconds after a warm-up, from the call to the device's last command; `first` is the first run, with
 * compiling and allocation, `memory` what a run takes at most besides the source. `host` is the median of the host's
 * conversion from coordinates, warm as well. Every result is compared: back to CSR on the device, with the matrix.
 */
import { SptError } from '../src/ast/diagnostics/diagnostic.ts'
import { instantiate } from '../src/formats/instance/instantiate.ts'
import type { StoredAxis } from '../src/ir/coordinates/axis.ts'
import { variable } from '../src/ir/expressions/expr.ts'
import type { Instance } from '../src/ir/formats/format.ts'
import { load, readTensor } from '../src/node.ts'
import { createCpuDevice } from '../src/runtime/cpu/device.ts'
import { createCudaDevice } from '../src/runtime/cuda/index.ts'
import type { Device, DeviceKind } from '../src/runtime/device.ts'
import { createNodeWebGpu } from '../src/runtime/webgpu/node.ts'
import { conversionPlan, uploadResident } from '../src/storage/engines/device/index.ts'
import { queueOf } from '../src/storage/engines/device/resident-tensors.ts'
import { TUNINGS } from '../src/storage/engines/device/tuning.ts'
import { convertTensor } from '../src/storage/entries/stored-parts.ts'
import type { CoordTensor, StoredTensor } from '../src/storage/tensor.ts'
import { counted, launchesByKey } from './counted.ts'
import { powerLaw, REDDIT_LIKE } from './power-law.ts'
import { count, median, option, packageFile, table, writeJson } from './support.ts'

/** Arguments of what `--to` names. */
const TARGETS: Readonly<Record<string, readonly number[]>> = {
  csr: [],
  csc: [],
  coo: [],
  hyb: [1, 5],
  bsr: [16],
  sr_bcrs: [8, 16],
  sell: [32, 1024],
}
const OVER: readonly StoredAxis[] = [
  { kind: 'dense_fixed', name: 'i', parent: null, extent: variable('m') },
  { kind: 'sparse_variable', name: 'j', parent: 'i', extent: variable('n'), ordered: true, unique: true },
]

async function open(kind: string): Promise<Device> {
  if (kind === 'cpu') return createCpuDevice()
  return kind === 'cuda' ? createCudaDevice() : createNodeWebGpu()
}

async function matrix(): Promise<StoredTensor> {
  const name = option('matrix') ?? 'power-law'
  if (name === 'power-law') {
    const scale = Number(option('scale') ?? 1)
    const nodes = count('nodes', Math.ceil(REDDIT_LIKE.nodes * scale))
    const edges = count('edges', Math.ceil(REDDIT_LIKE.edges * scale))
    const made = powerLaw({ ...REDDIT_LIKE, nodes, edges }, 'j')
    return withValues(made)
  }
  const t = await readTensor(name)
  if (t.kind !== 'coords') throw new Error(`${name} holds no coordinates`)
  return csrOf(t)
}

const withValues = (t: StoredTensor): StoredTensor => {
  const values = new Float32Array(t.arrays.j?.indices?.length ?? 0)
  for (let e = 0; e < values.length; e++) values[e] = 1 + (e % 7)
  return { ...t, values, dtype: 'f32' }
}

/** Sorted rows, each column once. */
function csrOf({ shape, coords }: CoordTensor): StoredTensor {
  const [rows, columns] = coords as [Int32Array, Int32Array]
  const lists = new Map<number, Set<number>>()
  for (let e = 0; e < rows.length; e++) {
    const list = lists.get(rows[e]!) ?? new Set()
    lists.set(rows[e]!, list.add(columns[e]!))
  }
  const indptr = new Int32Array(shape[0]! + 1)
  for (let r = 0; r < shape[0]!; r++) indptr[r + 1] = indptr[r]! + (lists.get(r)?.size ?? 0)
  const indices = new Int32Array(indptr[shape[0]!]!)
  for (const [r, list] of lists) indices.set(Int32Array.from(list).sort(), indptr[r]!)
  return withValues({ kind: 'stored', shape, arrays: { j: { indptr, indices } }, values: null, dtype: 'f32' })
}

function coordsOf(t: StoredTensor): CoordTensor {
  const { indptr, indices } = t.arrays.j as { indptr: Int32Array; indices: Int32Array }
  const rows = new Int32Array(indices.length)
  for (let r = 0; r + 1 < indptr.length; r++) rows.fill(r, indptr[r], indptr[r + 1])
  return { kind: 'coords', shape: t.shape, coords: [rows, indices], values: t.values, dtype: t.dtype }
}

const same = (a: ArrayLike<number>, b: ArrayLike<number>): boolean => {
  if (a.length !== b.length) return false
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return false
  return true
}

const opened = counted(await open(option('device') ?? 'cpu'))
const { device } = opened
const source = await matrix()
const shape = source.shape as [number, number]
const nonzeros = source.values!.length
const formats = new Map([
  ...(await load(packageFile('kernels/formats.spt'))).formats,
  ...(await load(packageFile('kernels/formats-composed.spt'))).formats,
])
const given = {
  sizes: new Map([
    ['m', shape[0]],
    ['n', shape[1]],
  ]),
  extents: new Map([
    ['i', shape[0]],
    ['j', shape[1]],
  ]),
  lists: new Map(),
  sets: new Map(),
}
const instanceOf = (text: string): Instance => {
  const [, name = text, list] = /^(\w+)(?:\((.*)\))?$/.exec(text) ?? []
  const format = formats.get(name)
  if (!format) throw new Error(`no format ${name}`)
  const args = list === undefined ? (TARGETS[name] ?? []) : list.split(',').map(Number)
  return instantiate({ format, args }, OVER, (x, label) => (label ? `${x}_${label}` : x))
}

/** What a format cannot hold is said, and the next one is tried. */
async function attempt<T>(f: () => T | Promise<T>): Promise<T | null> {
  try {
    return await f()
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    console.log(e.message)
    return null
  }
}

const queue = queueOf(device)
/** `9:256x9` or `7:1024`. */
function tune(variant: string): void {
  const [, digit, first, items] = /^(\d+):(\d+)(?:x(\d+))?$/.exec(variant) ?? []
  if (!digit || !first) throw new Error(`no way to sort: ${variant}`)
  queue.tuning.digit = Number(digit)
  queue.tuning.digitOfFew = Number(digit)
  queue.tuning.chunk = items
    ? { by: 'block', threads: Number(first), items: Number(items) }
    : { by: 'thread', length: Number(first) }
}
const like = option('like')
if (like) Object.assign(queue.tuning, TUNINGS[like as DeviceKind])
const { digit, chunk } = queue.tuning
if (option('fused')) queue.tuning.fused = count('fused', 1)
const own = `${digit}:${chunk.by === 'block' ? `${chunk.threads}x${chunk.items}` : chunk.length}`
const variants = option('variant')?.split(',') ?? [null]
const targets = (option('to') ?? 'hyb,bsr,sr_bcrs,sell').split(/,(?![^(]*\))/).map(instanceOf)
const from = await uploadResident(device, source, OVER)
const back = conversionPlan(device, instanceOf('csr'))
const repeats = count('repeats', 5)
const figures = []
console.log(`${device.name}: ${shape.join(' × ')}, ${nonzeros} nonzeros`)
for (const [to, variant] of targets.flatMap((t) => variants.map((v) => [t, v] as const))) {
  if (variant) tune(variant)
  const start = performance.now()
  const plan = conversionPlan(device, to)
  const tried = await attempt(() => plan.run(from, given))
  if (!tried) continue
  let made = tried
  const first = performance.now() - start
  const times: number[] = []
  let launches = 0
  let memory = 0
  for (let k = 0; k <= repeats; k++) {
    made.free()
    const before = queue.bytes
    queue.resetPeak()
    const t = performance.now()
    made = await plan.run(from, given)
    if (k > 0) times.push(performance.now() - t)
    launches = queue.launches
    memory = queue.peakBytes - before
  }
  const bytes = made.bytes
  if (option('count') !== undefined) {
    const rounds: number[] = []
    const inside: number[] = []
    for (let k = 0; k < repeats; k++) {
      made.free()
      opened.reset()
      const t = performance.now()
      made = await plan.run(from, given)
      rounds.push(performance.now() - t)
      inside.push(opened.counts().device)
    }
    const c = { ...opened.counts() }
    const own = median(rounds.map((x, k) => x - inside[k]!))
    const keys = launchesByKey(queue)
    made.free()
    made = await plan.run(from, given)
    keys.stop()
    console.log(
      `${to.text}: ${c.launches} launches, ${c.clears} clears in ${c.runs} runs, ${c.downloads} downloads of ${c.downloaded} bytes, ` +
        `${c.uploads} uploads, ${c.allocations} allocations, host ${(own * 1000).toFixed(0)} us, ` +
        `${((own * 1000) / (c.launches + c.clears)).toFixed(1)} us a command`,
    )
    const most = [...keys.found].sort((a, b) => b[1] - a[1])
    console.log(most.map(([key, n]) => `  ${n} ${key}`).join('\n'))
  }
  let right = 'not checked'
  if (option('check') !== 'no') {
    const rows = await back.run(made, given)
    const { storage, values } = (await rows.download()).parts[0]!
    const level = [...storage.levels.values()].at(-1)!
    const { indptr, indices } = source.arrays.j as { indptr: Int32Array; indices: Int32Array }
    right =
      same(level.indptr!, indptr) && same(level.indices!, indices) && same(values, source.values!)
        ? 'equal'
        : 'WRONG'
    rows.free()
  }
  made.free()
  queue.trim()
  let host: number | null = null
  if (option('host') !== 'no') {
    const coords = coordsOf(source)
    const rounds: number[] = []
    for (let k = 0; k <= repeats; k++) {
      const t = performance.now()
      if (!(await attempt(() => convertTensor(coords, to, given)))) break
      if (k > 0) rounds.push(performance.now() - t)
    }
    if (rounds.length > 0) host = median(rounds)
  }
  const ms = median(times)
  // What must be read and written at least: the source once, the result once.
  const least = nonzeros * 8 + (shape[0] + 1) * 4 + bytes
  figures.push({
    format: to.text,
    variant: variant ?? own,
    nonzeros,
    ms,
    first,
    launches,
    bytes,
    memory,
    gbps: least / ms / 1e6,
    host,
    right,
  })
  console.error(`${to.text} ${variant ?? own}: ${ms.toFixed(1)} ms, ${right}`)
}
console.log(
  table(
    ['format', 'sorts', 'ms', 'first', 'host', 'launches', 'MB', 'memory MB', 'GB/s', 'result'],
    figures.map((f) => [
      f.format,
      f.variant,
      f.ms,
      f.first,
      f.host ?? '',
      String(f.launches),
      f.bytes / 1e6,
      f.memory / 1e6,
      f.gbps,
      f.right,
    ]),
  ),
)
writeJson(figures)
from.free()
await device.dispose()
process.exitCode = figures.some((f) => f.right === 'WRONG') ? 1 : 0
