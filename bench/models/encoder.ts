/** A transformer encoder layer in f16, all weights tile-wise pruned to 75 %: inference of whole sequences. */
import { toF16 } from '../../src/ir/values/half.ts'
import { coords, dense, load } from '../../src/node.ts'
import { tileWise } from '../../src/prune.ts'
import type { Device } from '../../src/runtime/device.ts'
import { halves, widen } from '../gpu/blocks.ts'
import { GRANULARITY, Layer } from '../gpu/pruned-layers.ts'
import { packageFile } from '../support.ts'
import type { Step } from './index.ts'

export interface EncoderSize {
  readonly kind: 'encoder'
  readonly name: string
  readonly sequences: number
  readonly tokens: number
  readonly heads: number
  readonly hidden: number
}

/** Features of a head, and keys in a block of scores. */
const D = 64
/** Queries in a block of scores. */
const ROWS = 64
const SPARSITY = 0.75

/** BERT's base size as the suite `tile-wise` has it, the same with long sequences, and the large size. */
export const ENCODERS: readonly EncoderSize[] = [
  { kind: 'encoder', name: 'base 100 × 128', sequences: 100, tokens: 128, heads: 12, hidden: 3072 },
  { kind: 'encoder', name: 'base 32 × 512', sequences: 32, tokens: 512, heads: 12, hidden: 3072 },
  { kind: 'encoder', name: 'large 32 × 384', sequences: 32, tokens: 384, heads: 16, hidden: 4096 },
]

export async function encoder(device: Device, size: EncoderSize): Promise<Step> {
  const { sequences, tokens, heads, hidden } = size
  const [n, m] = [heads * D, sequences * tokens]
  const X = halves(n * m, 1)
  const arrays: Record<string, Float32Array> = { X: widen(X) }
  const program = await load(packageFile('bench/models/encoder.spt'))
  const built = {
    plain: await program.kernel('pruned_linear_f16').schedule('auto').build(device),
    gelu: await program.kernel('gelu_linear').schedule('auto').build(device),
    attend: await program.kernel('attend').schedule('wgmma').build(device),
    norm: await program.kernel('add_norm').schedule('gpu', n).build(device),
  }
  type Input = Parameters<typeof built.plain.bind>[0][string]
  const bound: Awaited<ReturnType<typeof built.plain.bind>>[] = []
  const bind = async (kernel: typeof built.plain, inputs: Readonly<Record<string, Input>>) => {
    bound.push(await kernel.bind(inputs))
    return bound.at(-1)!
  }
  /** `kernel` with weights of variance 1 / inputs, pruned. */
  const linear = async (kernel: typeof built.plain, name: string, rows: number, cols: number, X: Input) => {
    const layer = new Layer({ outputs: rows, inputs: cols, columns: m }, name.charCodeAt(0) * 131 + rows)
    const { csr } = await layer.pruned(tileWise({ granularity: GRANULARITY }), SPARSITY)
    const values = csr.values.map((v) => v / 32)
    const at = Int32Array.from(csr.indices, () => 0)
    for (let r = 0; r < rows; r++) at.fill(r, csr.indptr[r]!, csr.indptr[r + 1]!)
    arrays[name] = new Float32Array(rows * cols)
    values.forEach((v, e) => void (arrays[name]![at[e]! * cols + csr.indices[e]!] = v))
    arrays[`b${name}`] = layer.bias.map((v) => v / 8)
    const W = coords([rows, cols], [at, csr.indices], Uint16Array.from(values, toF16), 'f16')
    const b = dense([rows], arrays[`b${name}`]!)
    return (await bind(kernel, { W, X, b, low: -Infinity })).output('Y')
  }
  const norm = (X: Input, R: Input, k: 1 | 2) => {
    arrays[`g${k}`] = new Float32Array(n).fill(1).map((v, i) => v + (i % 7) / 16)
    arrays[`a${k}`] = new Float32Array(n).map((_, i) => (i % 5) / 16)
    return bind(built.norm, { X, R, G: dense([n], arrays[`g${k}`]!), B: dense([n], arrays[`a${k}`]!) })
  }
  const input = dense([n, m], X, 'f16')
  const [Q, K, V] = [
    await linear(built.plain, 'Q', n, n, input),
    await linear(built.plain, 'K', n, n, input),
    await linear(built.plain, 'V', n, n, input),
  ]
  const sizes = { sequences, blocks: tokens / ROWS, b: ROWS, key_blocks: tokens / D, keys: D, heads, d: D }
  const A = await bind(built.attend, { Q, K, V, scale: D ** -0.5, ...sizes })
  const O = await linear(built.plain, 'O', n, n, A.output('O'))
  const H = await norm(input, O, 1)
  const U = await linear(built.gelu, 'U', hidden, n, H.output('Y'))
  const Z = await linear(built.plain, 'Z', n, hidden, U)
  const Y = await norm(H.output('Y'), Z, 2)
  return {
    schedule: bound.find((b) => b.selection)?.selection?.text ?? 'auto',
    sizes: { sequences, tokens, heads, hidden, d: D },
    arrays,
    commands: () => bound.flatMap((b) => b.executable.commands),
    async results() {
      for (const b of bound) await b.run()
      return { Y: widen((await Y.get('Y')).values as Uint16Array) }
    },
    free: () => {
      for (const b of bound) b.free()
      for (const b of Object.values(built)) b.release()
    },
  }
}
