/**
 * Causal attention over blocks and columns, or over packed sequences, that are data of each run: ours find what counts on the device in
 * each, PyTorch's FlexAttention builds a mask of blocks.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dense, type Tensor } from '../../../src/node.ts'
import { type AttentionCase, entryOf, type PythonResult, pythonPeers } from '../../peers/python.ts'
import type { AttentionShape, Operands, Pairs } from '../attention-draw.ts'
import { BlocksAndColumns, ExpectedAttention, Packed } from '../attention-draw.ts'
import { widen } from '../blocks.ts'
import { type Candidate, fieldOf, parseCandidate } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { checkProduct, ours } from '../contestants.ts'
import { overview } from '../entry-table.ts'
import { normalsOf } from '../expected-groups.ts'
import { AS_IT_IS, type OurDevice } from '../ours.ts'
import type { Session } from '../session.ts'

const [DYNAMIC, RAGGED] = ['dynamic-attention', 'ragged-attention'] as const
const SAMPLED = 24
const COLUMNS = 0.02
const SHARES = [0.05, 0.2]
const SEQUENCES = 16
const BLOCKS = [
  [32, 'f32'],
  [64, 'f16'],
  [64, 'f32'],
] as const

type Type = 'f32' | 'f16'

/** What one case has, and its patterns as files and as first inputs. */
export interface AttentionDrawn {
  /** Also the field of `candidates.json`. */
  readonly suite: string
  readonly data: string
  readonly at: string
  readonly shape: AttentionShape
  readonly type: Type
  /** Rows of a block; of what is packed kernels say it. */
  readonly b: number | null
  readonly pairs: BlocksAndColumns | Packed
}

export function blockCase(shape: AttentionShape, b: number, share: number, type: Type): AttentionDrawn {
  const pairs = new BlocksAndColumns(shape, b, share, COLUMNS, Date.now() & 0xffff)
  const at = `${Math.round(100 * share)} %, ${shape.heads} heads`
  return { suite: `${DYNAMIC}-blocks-${b}-${type}`, data: `blocks of ${b}`, at, shape, type, b, pairs }
}

export function packedCase(shape: AttentionShape, sequences: number, type: Type): AttentionDrawn {
  const pairs = new Packed(shape, sequences, Date.now() & 0xffff)
  const at = `${shape.tokens} tokens, ${shape.heads} heads`
  return { suite: `${RAGGED}-${type}`, data: `${sequences} sequences`, at, shape, type, b: null, pairs }
}

export async function dynamicAttention(s: Session): Promise<void> {
  const shape = { tokens: 4096, heads: 8, d: 64 }
  const { quick } = s.options
  await attentionOf(
    s,
    (quick ? BLOCKS.slice(0, 2) : BLOCKS).flatMap(([b, type]) =>
      (quick ? SHARES.slice(0, 1) : SHARES).map((share) => blockCase(shape, b, share, type)),
    ),
  )
  s.say(overview(s.cases.filter((c) => c.suite.startsWith(DYNAMIC))))
}

export async function raggedAttention(s: Session): Promise<void> {
  const shape = { tokens: 8192, heads: 16, d: 64 }
  await attentionOf(
    s,
    (['f32', 'f16'] as const).map((type) => packedCase(shape, SEQUENCES, type)),
  )
  s.say(overview(s.cases.filter((c) => c.suite.startsWith(RAGGED))))
}

export async function attentionOf(s: Session, cases: readonly AttentionDrawn[]): Promise<void> {
  const left = cases.filter((c) => !s.has(c.suite, c.data, c.at))
  const python = await peers(s, left)
  for (const c of left) {
    if (s.late()) return
    await one(s, c, python)
  }
}

const idOf = (c: AttentionDrawn): string => `${c.suite} ${c.at}`

/** Cases in one process: compiling takes most of its time. */
const peers = (s: Session, cases: readonly AttentionDrawn[]): Promise<readonly PythonResult[]> =>
  pythonPeers('dynamic_attention.py', s, (folder) =>
    cases.map((c, k): AttentionCase => {
      const file = join(folder, String(k))
      const { pairs } = c
      if (pairs instanceof Packed) writeFileSync(`${file}-ends`, pairs.ends)
      else {
        writeFileSync(`${file}-blocks`, pairs.blocks)
        writeFileSync(`${file}-columns`, pairs.columns)
      }
      return { id: idOf(c), file, b: c.b, type: c.type, ...c.shape }
    }),
  )

async function one(s: Session, c: AttentionDrawn, python: readonly PythonResult[]): Promise<void> {
  const { shape, type, pairs } = c
  const { tokens, heads, d } = shape
  const on = await s.cuda()
  const bits = [1, 2, 3].map((k) => normalsOf(type, tokens * heads * d, (Date.now() + k) & 0xffff))
  const [Q, K, V] = bits.map((x) => (x instanceof Float32Array ? x : widen(x))) as [
    Float32Array,
    Float32Array,
    Float32Array,
  ]
  const expected = new ExpectedAttention(
    shape,
    pairs satisfies Pairs,
    { Q, K, V } satisfies Operands,
    SAMPLED,
  )
  const asked = s.options.schedules.filter((text) => fits(parseCandidate(text), c))
  const field = fieldOf(c.suite, asked)
  const entries = await compete(
    field.candidates.map((candidate) => ourAttention(on, candidate, c, bits, expected)),
    field.standard,
    s,
  )
  const flops = 4 * pairs.count * d
  const bytes = (type === 'f16' ? 8 : 16) * tokens * heads * d
  await s.done({
    suite: c.suite,
    data: c.data,
    at: c.at,
    entries: [...entries, ...python.filter((r) => r.id === idOf(c)).map(entryOf)],
    checked: expected.checked,
    floor: s.ceilings ? floor(s.ceilings, { flops, bytes }, type) : null,
    flops,
    standard: field.standard,
  })
}

/** Rows of a block: the first argument of all schedules. */
const widthOf = ({ kernel, args }: Candidate): number => args[0] ?? (kernel.endsWith('<f16>') ? 64 : 32)

const fits = (candidate: Candidate, { type, b }: AttentionDrawn): boolean =>
  candidate.kernel.endsWith('<f16>') === (type === 'f16') && (b === null || b === widthOf(candidate))

const ourAttention = (
  on: OurDevice,
  candidate: Candidate,
  { shape, type, b, pairs }: AttentionDrawn,
  bits: readonly (Float32Array | Uint16Array)[],
  expected: ExpectedAttention,
): Contestant =>
  ours(
    candidate.text,
    async () => {
      const { tokens, heads, d } = shape
      // What is packed is cut into what the standard schedules are fastest with.
      const width = b ?? candidate.args[0] ?? 64
      const blocks = tokens / width
      const whole = [tokens, heads, d]
      const cut = [blocks, width, heads, d]
      const tensor = (at: number, dims: readonly number[]): Tensor => dense(dims, bits[at]!, type)
      const ready = await on.ready(candidate)
      const params = { scale: 1 / Math.sqrt(d), causal: 1 }
      if (pairs instanceof Packed)
        return on.prepare(
          ready,
          AS_IT_IS,
          tensor(0, cut),
          { E: dense([pairs.ends.length], pairs.ends), K: tensor(1, cut), V: tensor(2, cut) },
          params,
        )
      return on.prepare(
        ready,
        AS_IT_IS,
        dense([heads, blocks, blocks], pairs.blocks),
        {
          C: dense([heads, tokens], pairs.columns),
          Q: tensor(0, cut),
          K: tensor(1, whole),
          V: tensor(2, whole),
        },
        params,
      )
    },
    (run) => checkProduct(run, expected),
  )
