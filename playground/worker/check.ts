/** Diagnostics of a text: of the program, and of the steps of each schedule that the text declares. */
import { SptError, type SptProgram } from '../../src/index.ts'
import type { Checked, Mark } from '../protocol.ts'
import { kernelInfo, programOf } from './compiler.ts'
import { errorText, MAIN, markOf } from './diagnostics.ts'

export async function check(text: string): Promise<Checked> {
  const marks: Mark[] = []
  const elsewhere: string[] = []
  const report = (e: unknown): void => {
    if (!(e instanceof SptError)) {
      elsewhere.push(errorText(e))
      return
    }
    for (const d of e.diagnostics) {
      const mark = markOf(d, text)
      if (mark) marks.push(mark)
      else elsewhere.push(errorText(Object.assign(new SptError(d), { sources: e.sources })))
    }
  }
  let program: SptProgram
  try {
    program = await programOf(text)
  } catch (e) {
    report(e)
    return { marks, elsewhere, kernels: null, formats: [] }
  }
  const kernels = []
  for (const name of program.kernels) {
    const kernel = program.kernel(name)
    kernels.push(kernelInfo(kernel))
    // `load` resolves the names of steps; whether a step is legal shows when it is applied.
    for (const [schedule, { steps, params }] of kernel.declaredSchedules) {
      if (!steps.some((s) => s.span?.source === MAIN) || params.some((p) => p.default === null)) continue
      try {
        kernel.schedule(schedule)
      } catch (e) {
        report(e)
      }
    }
  }
  return { marks: unique(marks), elsewhere, kernels, formats: [...program.formats.keys()] }
}

/** A step that several schedules use is reported once. */
const unique = (marks: readonly Mark[]): Mark[] => [
  ...new Map(marks.map((m) => [`${m.from} ${m.to} ${m.message}`, m])).values(),
]
