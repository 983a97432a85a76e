/** Suites of one operation on matrices by rows: every matrix with every width of the dense operands, against cuSPARSE. */
import type { CsrMemory } from '../../peers/cusparse.ts'
import type { Memory } from '../../peers/stream.ts'
import { type Candidate, fieldOf, widthValues } from '../candidates.ts'
import { type Case, type Contestant, compete } from '../case.ts'
import { floor, type Least } from '../ceilings.ts'
import { Formats } from '../formats.ts'
import { type Csr, describe } from '../matrix.ts'
import type { OurDevice } from '../ours.ts'
import type { Session } from '../session.ts'

export interface Operation {
  /** Its suite, and the first word of its kernels' names. */
  readonly name: string
  /** The width of the dense operands, as tables call it. */
  readonly letter: string
  /** The only ones that it has. */
  readonly widths?: readonly number[]
  /** One case: operands, and what has to come out. */
  of(A: Csr, width: number): Operands
}

interface Operands {
  readonly least: Least
  /** How results are checked. */
  readonly checked: string
  ours(on: OurDevice, candidate: Candidate, formats: Formats, label?: string): Contestant
  /** A library's contestants on `A`; what they share on the device is for the caller to free. */
  peers(s: Session, A: CsrMemory): Promise<Peers>
}

interface Peers {
  readonly contestants: readonly Contestant[]
  readonly memory: readonly Memory[]
}

/** The suite of an operation: all matrices that were asked for. */
export const overMatrices =
  (operation: Operation) =>
  async (s: Session): Promise<void> => {
    for await (const A of s.matrices()) {
      s.say(describe(A))
      await overWidths(s, operation.name, operation, A, s.options.widths)
    }
  }

/** The cases of one matrix, as one suite; those that were done now. */
export async function overWidths(
  s: Session,
  suite: string,
  operation: Operation,
  A: Csr,
  widths: readonly number[],
): Promise<readonly Case[]> {
  const [device, stream, library] = [await s.cuda(), await s.stream(), await s.cusparse()]
  const formats = new Formats()
  const there = library.upload(A)
  const done: Case[] = []
  try {
    for (const width of widths) {
      const at = `${operation.letter} = ${width}`
      if (s.late()) {
        s.leave(`${A.name} ${at}`)
        continue
      }
      if (s.has(suite, A.name, at)) continue
      const field = fieldOf(suite, s.options.schedules, widthValues(width))
      const operands = operation.of(A, width)
      const { least, checked } = operands
      const peers = await operands.peers(s, there)
      const mine = field.candidates.map((c) => operands.ours(device, c, formats))
      const entries = await compete([...peers.contestants, ...mine], field.standard, s)
      stream.free(...peers.memory)
      const result: Case = {
        suite,
        data: A.name,
        at,
        entries,
        checked,
        floor: s.ceilings ? floor(s.ceilings, least, 'f32') : null,
        flops: least.flops,
        standard: field.standard,
      }
      await s.done(result)
      done.push(result)
    }
  } finally {
    library.release(there)
    await formats.free()
  }
  return done
}
