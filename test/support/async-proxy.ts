/**
 * A device some of whose instructions read shared memory through the async proxy. Of what threads wrote there it sees
 * only what a fence followed (PTX ISA, "Async proxy"); hardware need not show it the rest, so here it never does.
 */
import { InternalError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Memory } from '../../src/interpret/races.ts'
import { compileExpr, type Frame, type Instructions } from '../../src/interpret/thread-code.ts'
import type { InstrCall } from '../../src/ir/instructions/instr-call.ts'

/** `put`: a row, without a fence; `put_fenced`: with one; `twice`: reads its row through the proxy. */
export const PROXIED = `
instr put(D: f32[4] in shared, S: f32[4] in global) {
  iterate copy [j] as S { D[j] = S[j] }
  cuda \`put($D.at(0), $S.at(0));\`
}
instr put_fenced(D: f32[4] in shared fenced, S: f32[4] in global) {
  iterate copy [j] as S { D[j] = S[j] }
  cuda \`put_fenced($D.at(0), $S.at(0));\`
}
instr twice(D: f32[4] in global, S: f32[4] in shared fenced) {
  iterate double [j] as S { D[j] = S[j] + S[j] }
  cuda \`twice($D.at(0), $S.at(0));\`
}`

const ROW = 4

export class AsyncProxy implements Instructions {
  /** What it sees of each memory, by element. */
  readonly #seen = new Map<Memory, Map<number, number>>()

  begin(call: InstrCall, f: Frame): () => boolean {
    const [text, ...rest] = call.texts[0]!.pieces
    const name = /^\w+/.exec(String(text))?.[0]
    const [to, from] = rest.flatMap((p): readonly Place[] => (typeof p === 'string' ? [] : [placeOf(p, f)]))
    for (let k = 0; k < ROW; k++) {
      const x = name === 'twice' ? 2 * this.#seenAt(from!, k) : from![0].read(from![1] + k, f.state, false)
      to![0].write(to![1] + k, x, f.state, false)
      if (name === 'put_fenced') this.#of(to![0]).set(to![1] + k, x)
    }
    return () => true
  }

  #seenAt([memory, base]: Place, k: number): number {
    return this.#of(memory).get(base + k) ?? Number.NaN
  }

  #of(memory: Memory): Map<number, number> {
    const seen = this.#seen.get(memory) ?? new Map<number, number>()
    this.#seen.set(memory, seen)
    return seen
  }
}

type Place = readonly [Memory, number]

function placeOf(p: Exclude<InstrCall['texts'][number]['pieces'][number], string>, f: Frame): Place {
  const memory = p.kind === 'value' ? undefined : f.memory.get(p.buffer)
  if (p.kind === 'value' || !memory) throw new InternalError('an operand is a place in memory')
  return [memory, compileExpr(p.index[0]!)(f)]
}
