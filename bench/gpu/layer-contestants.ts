/** Contestants of the suite `tile-wise`: ours on what a pattern leaves of a layer, and cuBLAS and cuSPARSE. */
import type { Pattern } from '../../src/prune.ts'
import { CSR_ALGORITHMS } from '../peers/cusparse.ts'
import type { Memory, PeerStream } from '../peers/stream.ts'
import { widen } from './blocks.ts'
import { type Candidate, type Field, fieldOf, parseCandidate } from './candidates.ts'
import type { Case, Contestant } from './case.ts'
import { floor } from './ceilings.ts'
import { checkProduct, ours, peer, withTypes } from './contestants.ts'
import { allowed, ExpectedProduct, PRECISION, Tally, type Verdict, WORK } from './expected.ts'
import type { Formats } from './formats.ts'
import { messageOf, type OurDevice } from './ours.ts'
import type { Activations, Kept, Layer, LayerSize } from './pruned-layers.ts'
import { bindLayer, ExpectedLayer, percent } from './pruned-layers.ts'
import { choose } from './random.ts'
import type { Session } from './session.ts'
import { full } from './suites/gemm.ts'

/** What a pattern leaves of a layer, or nothing where it cannot have that sparsity, which is said. */
export async function keptOf(
  s: Session,
  layer: Layer,
  pattern: Pattern | null,
  sparsity: number,
): Promise<Kept | undefined> {
  if (!pattern) return layer.whole()
  try {
    return await layer.pruned(pattern, sparsity)
  } catch (error) {
    s.say(`${pattern.text} at ${percent(sparsity)} is left out: ${messageOf(error)}`)
    return undefined
  }
}

/** Fields whose kernels may be called alike, but not their schedules. */
const FIELDS = ['tw', 'tew', 'tvw', 'bw', 'dense'].map((name) => `tile-wise-${name}`)

/**
 * What is timed in one of these. Of what was asked for, that is what it has a schedule of that name for; names that
 * none has go by their file, and with files that none has everything is timed.
 */
export function layerField(suite: string, asked: readonly string[]): Field {
  const own = fieldOf(suite, []).candidates
  const all = FIELDS.flatMap((field) => fieldOf(field, []).candidates)
  const isMine = (c: Candidate): boolean => {
    const same = (['schedule', 'file'] as const).find((key) => all.some((o) => o[key] === c[key]))
    return same === undefined || own.some((o) => o[same] === c[same])
  }
  return fieldOf(
    suite,
    asked.filter((text) => isMine(parseCandidate(text))),
  )
}

/** Candidates with one mask; formats are built once for all that share a kernel. */
export class OurLayer {
  readonly kept: Kept
  readonly #layer: Layer
  readonly #X: Activations
  readonly #expected: ExpectedLayer

  constructor(layer: Layer, X: Activations, kept: Kept) {
    this.kept = kept
    this.#layer = layer
    this.#X = X
    this.#expected = new ExpectedLayer(kept, X, layer)
  }

  get checked(): string {
    return this.#expected.checked
  }

  contestant(on: OurDevice, c: Candidate, formats: Formats): Contestant {
    const { outputs, inputs } = this.#layer.size
    const sparsity = percent(1 - this.kept.bits.length / (outputs * inputs))
    return ours(
      c.text,
      () => bindLayer(on, c, formats, this.kept, this.#X.bits, this.#layer.bias),
      (run) => checkProduct(run, this.#expected.of(run.inputs.length > 2)),
      (run) => ({ ...withTypes(run), sparsity }),
    )
  }
}

/** Weights, activations and the result once; 2 operations for each weight that is left and column. */
export function leastOf(s: Session, { bits }: Kept, size: LayerSize): Pick<Case, 'floor' | 'flops'> {
  const { outputs, inputs, columns } = size
  const flops = 2 * bits.length * columns
  const bytes = 2 * bits.length + 2 * columns * (inputs + outputs)
  return { flops, floor: s.ceilings ? floor(s.ceilings, { flops, bytes }, 'f16') : null }
}

/** Inputs that a dense product of as much work has: a multiple of eight, which are 16 bytes. */
export const keptInputs = ({ inputs }: LayerSize, sparsity: number): number =>
  Math.min(inputs, Math.max(8, Math.round(((1 - sparsity) * inputs) / 8) * 8))

/** What libraries make of a layer, on one copy of its operands; `free` when all is done. */
export class LayerPeers {
  readonly #s: Session
  readonly #stream: PeerStream
  readonly #layer: Layer
  readonly #X: Activations
  readonly #weights: Memory
  readonly #activations: Memory

  constructor(s: Session, stream: PeerStream, layer: Layer, X: Activations) {
    this.#s = s
    this.#stream = stream
    this.#layer = layer
    this.#X = X
    this.#weights = stream.upload(layer.bits)
    this.#activations = stream.upload(X.bits)
  }

  /** cuBLAS with all weights; the same memory taken as [inputs, columns] and as [columns, inputs]. */
  get dense(): Contestant[] {
    const { outputs: n, inputs: k, columns: m } = this.#layer.size
    const expected = (): ExpectedProduct =>
      new ExpectedProduct(full(n, k, this.#layer.values), this.#X.values, m)
    return [
      this.#contestant('cuBLAS, W X', expected, async (y) =>
        (await this.#s.cublas()).gemm('f16', [n, m, k], this.#weights, this.#activations, y),
      ),
      this.#contestant(
        'cuBLAS, X Wᵀ',
        () => new ExpectedElements(this.#layer, this.#X),
        async (y) =>
          (await this.#s.cublas()).gemm('f16', [m, n, k], this.#activations, this.#weights, y, 'transposed'),
      ),
    ]
  }

  /** cuBLAS with the first `few` inputs alone: what pruned ones can come to. */
  few(few: number): Contestant {
    const { outputs: n, inputs: k, columns: m } = this.#layer.size
    const bits = new Uint16Array(n * few)
    for (let r = 0; r < n; r++) bits.set(this.#layer.bits.subarray(r * k, r * k + few), r * few)
    let own: Memory | undefined
    return this.#contestant(
      `cuBLAS, ${few} inputs`,
      () => new ExpectedProduct(full(n, few, widen(bits)), this.#X.values, m),
      async (y) => {
        own = this.#stream.upload(bits)
        return (await this.#s.cublas()).gemm('f16', [n, m, few], own, this.#activations, y)
      },
      () => this.#stream.free(own),
    )
  }

  /** cuSPARSE's algorithms for rows of single elements. */
  single(kept: Kept): Contestant[] {
    const { outputs: n, inputs: k, columns: m } = this.#layer.size
    let expected: ExpectedProduct | undefined
    return (Object.keys(CSR_ALGORITHMS) as (keyof typeof CSR_ALGORITHMS)[]).map((algorithm) => {
      let free = (): void => {}
      return this.#contestant(
        `cuSPARSE CSR ${algorithm}`,
        () => {
          expected ??= new ExpectedProduct(kept.csr, this.#X.values, m)
          return expected
        },
        async (y) => {
          const library = await this.#s.cusparse()
          const there = library.upload(kept.csr, kept.bits)
          free = () => library.release(there)
          const X = { memory: this.#activations, rows: k, columns: m }
          const call = library.spmm(there, X, { memory: y, rows: n, columns: m }, algorithm)
          free = () => {
            call.free()
            library.release(there)
          }
          return call.enqueue
        },
        () => free(),
      )
    })
  }

  free(): void {
    this.#stream.free(this.#weights, this.#activations)
  }

  #contestant(
    name: string,
    expected: () => { check(Y: Float32Array, p: typeof PRECISION.f16): Verdict },
    start: (output: Memory) => Promise<() => void>,
    free: () => void = () => {},
  ): Contestant {
    const { outputs, columns } = this.#layer.size
    return peer(this.#s, name, async (stream) => {
      const output = stream.alloc(2 * outputs * columns)
      const all = (): void => {
        free()
        stream.free(output)
      }
      try {
        return {
          enqueue: await start(output),
          output,
          check: () =>
            expected().check(
              widen(stream.download(output, new Uint16Array(outputs * columns))),
              PRECISION.f16,
            ),
          free: all,
        }
      } catch (error) {
        all()
        throw error
      }
    })
  }
}

/** Some elements of X Wᵀ in float64, X taken as [columns, inputs]; the others for being numbers. */
class ExpectedElements {
  readonly #layer: Layer
  readonly #X: Activations

  constructor(layer: Layer, X: Activations) {
    this.#layer = layer
    this.#X = X
  }

  check(Y: Float32Array, p: typeof PRECISION.f16): Verdict {
    const { outputs: n, inputs: k } = this.#layer.size
    const [w, x] = [this.#layer.values, this.#X.values]
    const tally = new Tally()
    for (const at of choose(Math.min(Y.length, Math.floor(WORK / k)), Y.length, Date.now() & 0xffff)) {
      const [row, output] = [Math.floor(at / n) * k, (at % n) * k]
      let [want, scale] = [0, 0]
      for (let c = 0; c < k; c++) {
        const product = x[row + c]! * w[output + c]!
        want += product
        scale += Math.abs(product)
      }
      const bound = allowed(k, p) * scale + p.output * Math.abs(want)
      tally.add(() => `element ${at}`, Y[at]!, want, scale, bound)
    }
    tally.whole(Y)
    return tally.verdict
  }
}
