/** Diagnostics of a text: of the program, and of the steps of the schedules that the text declares. */
import { SptError } from '../../src/index.ts'
import type { Checked, Mark, Problems } from '../protocol.ts'
import { kernelInfo, programOf } from './compiler.ts'
import { errorText, MAIN, markOf } from './diagnostics.ts'

class Report implements Problems {
  readonly elsewhere: string[] = []
  readonly #text: string
  /** A step that several schedules use is reported once. */
  readonly #marks = new Map<string, Mark>()

  constructor(text: string) {
    this.#text = text
  }

  get marks(): readonly Mark[] {
    return [...this.#marks.values()]
  }

  add(e: unknown): void {
    if (!(e instanceof SptError)) {
      this.elsewhere.push(errorText(e))
      return
    }
    for (const d of e.diagnostics) {
      const mark = markOf(d, this.#text)
      if (mark) this.#marks.set(`${mark.from} ${mark.to} ${mark.message}`, mark)
      else this.elsewhere.push(errorText(Object.assign(new SptError(d), { sources: e.sources })))
    }
  }

  get data(): Problems {
    return { marks: this.marks, elsewhere: this.elsewhere }
  }
}

export async function check(text: string): Promise<Checked> {
  const report = new Report(text)
  try {
    const program = await programOf(text)
    const kernels = program.kernels.map((name) => kernelInfo(program.kernel(name)))
    return { marks: [], elsewhere: [], kernels, formats: [...program.formats.keys()] }
  } catch (e) {
    report.add(e)
    return { ...report.data, kernels: null, formats: [] }
  }
}

/** Applies the schedules that the text declares, with their default arguments. The text must be correct otherwise. */
export async function checkSteps(text: string): Promise<Problems> {
  const program = await programOf(text)
  const report = new Report(text)
  for (const name of program.kernels) {
    const kernel = program.kernel(name)
    for (const [schedule, { steps, params }] of kernel.declaredSchedules) {
      if (!steps.some((s) => s.span?.source === MAIN) || params.some((p) => p.default === null)) continue
      try {
        kernel.schedule(schedule)
      } catch (e) {
        report.add(e)
      }
    }
  }
  return report.data
}
