/**
 * A layer of a mixture of experts from the logits of its router to the result, f16 with f32 sums: which tokens an expert has is found
 * in each run. Against PyTorch, and against cuBLAS's rate: the same useful work as dense products of one expert.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dense } from '../../../src/node.ts'
import { routings } from '../../families/groups.ts'
import { generateMember } from '../../families/matrix-family.ts'
import { type ExpertCase, entryOf, type PythonResult, pythonPeers } from '../../peers/python.ts'
import { widen } from '../blocks.ts'
import { type Candidate, fieldOf } from '../candidates.ts'
import { type Contestant, compete } from '../case.ts'
import { floor } from '../ceilings.ts'
import { checkProduct, ours, peer, withTypes } from '../contestants.ts'
import { inputs } from '../declared.ts'
import { overview } from '../entry-table.ts'
import { PRECISION } from '../expected.ts'
import { normalsOf } from '../expected-groups.ts'
import { ExpectedLayers, type LayerShape } from '../expected-layers.ts'
import { groupKind, noMember } from '../groups.ts'
import { AS_IT_IS, type OurDevice } from '../ours.ts'
import { choose, fillNormal } from '../random.ts'
import type { Session } from '../session.ts'

const SUITE = 'expert-layer'
const SHAPE: LayerShape = { inputs: 1024, hidden: 4096, outputs: 1024 }
const EXPERTS = [64, 128]
const TOPS = [1, 2]
/** Tokens whose results are computed in float64: each takes millions of products. */
const SAMPLED = 24

export async function expertLayers(s: Session): Promise<void> {
  const { quick, matrices, data } = s.options
  const asked = matrices.filter((name) => groupKind(name, data) === 'experts')
  const cases = (quick ? EXPERTS.slice(0, 1) : EXPERTS).flatMap((experts) =>
    (asked.length > 0 ? asked : ['routing']).flatMap((name) =>
      (quick ? TOPS.slice(0, 1) : TOPS).map((top) => new Routing(name, experts, top)),
    ),
  )
  await expertLayersOf(s, cases, SHAPE)
}

/** Logits of a router by which each token goes to the `top` experts that a member of a family has for it. */
export class Routing {
  readonly name: string
  readonly experts: number
  readonly top: number
  readonly tokens: number
  /** [tokens, experts]: whom a token goes to has more than 1, in order, and all others less than 0. */
  readonly logits: Float32Array
  /** Experts of a token, the first first. */
  readonly #chosen: Int32Array

  constructor(name: string, experts: number, top: number) {
    const pattern = generateMember(routings(experts, top), name) ?? noMember(name)
    this.name = name
    this.experts = experts
    this.top = top
    this.tokens = pattern.shape[1]
    this.#chosen = pattern.coords[0]
    this.logits = fillNormal(new Float32Array(this.tokens * experts), Date.now() & 0xffff)
    this.logits.forEach((x, at) => {
      this.logits[at] = -Math.abs(x) - 0.01
    })
    this.#chosen.forEach((e, at) => {
      const place = Math.floor(at / top) * experts + e
      // Gates between a half and nine tenths.
      this.logits[place] = top - (at % top) + 0.25 + (Math.abs(this.logits[place]!) % 1) / 2
    })
  }

  get at(): string {
    return `${this.experts} experts, top ${this.top}`
  }

  get id(): string {
    return `${this.name} ${this.at}`
  }

  /** Experts and gates of a token. */
  of(token: number): readonly { readonly expert: number; readonly gate: number }[] {
    const experts = [...this.#chosen.subarray(token * this.top, (token + 1) * this.top)]
    const logits = experts.map((e) => this.logits[token * this.experts + e]!)
    const parts = logits.map((l) => Math.exp(l - logits[0]!))
    const sum = parts.reduce((a, b) => a + b, 0)
    return experts.map((expert, k) => ({ expert, gate: parts[k]! / sum }))
  }

  /** Tokens of the expert with the most of them. */
  get most(): number {
    const sizes = new Int32Array(this.experts)
    for (const e of this.#chosen) sizes[e]!++
    return sizes.reduce((a, b) => Math.max(a, b), 0)
  }
}

/** Operands of one case, as bits. */
interface Layer {
  readonly shape: LayerShape
  readonly routing: Routing
  readonly X: Uint16Array
  readonly U: Uint16Array
  readonly D: Uint16Array
}

export async function expertLayersOf(
  s: Session,
  cases: readonly Routing[],
  shape: LayerShape,
): Promise<void> {
  const left = cases.filter(({ name, at }) => !s.has(SUITE, name, at))
  const python = await peers(s, left, shape)
  const { inputs: k, hidden: h, outputs: n } = shape
  let weights: Pick<Layer, 'U' | 'D'> & { readonly experts: number } = {
    experts: 0,
    U: new Uint16Array(0),
    D: new Uint16Array(0),
  }
  for (const routing of left) {
    if (s.late()) break
    const { experts, tokens } = routing
    const seed = Date.now() & 0xffff
    if (weights.experts !== experts)
      weights = {
        experts,
        U: normalsOf('f16', experts * k * h, seed) as Uint16Array,
        D: normalsOf('f16', experts * h * n, seed + 1) as Uint16Array,
      }
    const X = normalsOf('f16', tokens * k, seed + 2) as Uint16Array
    s.say(`${routing.id}: ${tokens} tokens, largest expert ${routing.most}`)
    await one(s, { shape, routing, X, ...weights }, python)
  }
  s.say(overview(s.cases.filter((c) => c.suite.startsWith(SUITE))))
}

/** All cases in one process: it takes seconds to start. */
const peers = (
  s: Session,
  cases: readonly Routing[],
  { inputs, hidden, outputs }: LayerShape,
): Promise<readonly PythonResult[]> =>
  pythonPeers('expert_layer.py', s, (folder) =>
    cases.map((routing, c): ExpertCase => {
      const { id, experts, tokens, top } = routing
      const file = join(folder, String(c))
      writeFileSync(`${file}-logits`, routing.logits)
      return { id, file, experts, tokens, top, inputs, hidden, outputs }
    }),
  )

async function one(s: Session, layer: Layer, python: readonly PythonResult[]): Promise<void> {
  const { shape, routing } = layer
  const { id, name, at, top, tokens, experts } = routing
  const field = fieldOf(SUITE, s.options.schedules, { top })
  const on = await s.cuda()
  const expected = expectedOf(layer)
  const entries = await compete(
    [oneExpert(s, layer), ...field.candidates.map((c) => ourLayer(on, c, layer, expected))],
    field.standard,
    s,
  )
  const { inputs: k, hidden: h, outputs: n } = shape
  const flops = 2 * top * tokens * h * (k + n)
  const bytes = 4 * tokens * experts + 2 * tokens * k + 2 * experts * h * (k + n) + 4 * tokens * n
  const base = {
    data: name,
    at,
    checked: expected.checked,
    floor: s.ceilings ? floor(s.ceilings, { flops, bytes }, 'f16') : null,
    flops,
    standard: field.standard,
  }
  const own = entries.filter((e) => e.side === 'ours')
  await s.done({
    ...base,
    suite: SUITE,
    entries: [...own, ...python.filter((r) => r.id === id).map(entryOf)],
  })
  await s.done({ ...base, suite: `${SUITE}-dense`, entries })
}

/** The tokens at both ends, and some between. */
const sampledOf = (tokens: number): Int32Array =>
  Int32Array.from(new Set([0, tokens - 1, ...choose(Math.min(SAMPLED, tokens), tokens, Date.now() & 0xffff)]))

/** The matrix of an expert. */
const matrixOf = (W: Uint16Array, expert: number, size: number): Float32Array =>
  widen(W.subarray(expert * size, (expert + 1) * size))

function expectedOf({ shape, routing, X, U, D }: Layer): ExpectedLayers {
  const { inputs: k, hidden: h, outputs: n } = shape
  return new ExpectedLayers(
    shape,
    routing.tokens,
    sampledOf(routing.tokens),
    (t) => widen(X.subarray(t * k, (t + 1) * k)),
    (t) =>
      routing.of(t).map(({ expert, gate }) => ({
        gate,
        U: matrixOf(U, expert, k * h),
        D: matrixOf(D, expert, h * n),
      })),
  )
}

const ourLayer = (on: OurDevice, candidate: Candidate, layer: Layer, expected: ExpectedLayers): Contestant =>
  ours(
    candidate.text,
    async () => {
      const { shape, routing, X, U, D } = layer
      const { inputs: k, hidden: h, outputs: n } = shape
      const { experts, tokens, top, logits } = routing
      const ready = await on.ready(candidate)
      const [g, x, u, d] = inputs(ready.source)
      if (!g || !x || !u || !d) throw new Error(`${ready.source.name} has too few inputs`)
      const scalars = ready.source.params
        .filter((p) => p.kind === 'scalar')
        .map((p) => [p.name, top] as const)
      return on.prepare(
        ready,
        AS_IT_IS,
        dense([tokens, experts], logits),
        {
          [x.name]: dense([tokens, k], X, 'f16'),
          [u.name]: dense([experts, k, h], U, 'f16'),
          [d.name]: dense([experts, h, n], D, 'f16'),
        },
        Object.fromEntries(scalars),
      )
    },
    (run) => checkProduct(run, expected),
    withTypes,
  )

/** As many rows as tokens go to experts, all of one expert and without a rectification: two dense products of the library. */
function oneExpert(s: Session, { shape, routing, X, U, D }: Layer): Contestant {
  const { inputs: k, hidden: h, outputs: n } = shape
  const rows = routing.top * routing.tokens
  return peer(s, 'cuBLAS, all to one expert', async (stream) => {
    const blas = await s.cublas()
    const all = new Uint16Array(rows * k)
    for (let at = 0; at < all.length; at += X.length) all.set(X, at)
    const matrices = [U.subarray(0, k * h), D.subarray(0, h * n)] as const
    const [x, u, d] = [stream.upload(all), stream.upload(matrices[0]), stream.upload(matrices[1])]
    const [hidden, y] = [stream.alloc(2 * rows * h), stream.alloc(2 * rows * n)]
    const steps = [blas.gemm('f16', [rows, h, k], x, u, hidden), blas.gemm('f16', [rows, n, h], hidden, d, y)]
    return {
      enqueue: () => {
        for (const step of steps) step()
      },
      output: y,
      check() {
        const expected = new ExpectedLayers(
          shape,
          rows,
          Int32Array.of(0, rows - 1),
          (r) => widen(all.subarray(r * k, (r + 1) * k)),
          () => [{ gate: 1, U: widen(matrices[0]), D: widen(matrices[1]) }],
          -Infinity,
        )
        return expected.check(widen(stream.download(y, new Uint16Array(rows * n))), PRECISION.f16)
      },
      free: () => stream.free(x, u, d, hidden, y),
    }
  })
}
