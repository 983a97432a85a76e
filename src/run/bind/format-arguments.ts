/** Format arguments in error messages: the width of an axis may not suffice because a format has other arguments than intended. */
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'

/** Runs `work`, and appends the format with its arguments to `bind/width` errors. */
export function withArguments<T>(kernel: Kernel1, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    const told = error.diagnostics.map((d) => {
      const of = d.code === 'bind/width' && d.span ? argumentsAt(kernel, d.span) : undefined
      return of === undefined ? d : { ...d, message: `${d.message} (${of})` }
    })
    throw Object.assign(new SptError(told), { sources: error.sources })
  }
}

/** The format of the axis at `span` with its arguments, such as `tile_wise(g = 128, s = 64)`; undefined without arguments. */
function argumentsAt({ reformats }: Kernel1, span: object): string | undefined {
  const parts = reformats.flatMap((r) => r.instance.parts.map((p) => p.instance))
  const found = parts.find((p) => p.constants.size > 0 && p.axes.some((a) => a.span === span))
  if (!found) return undefined
  const given = [...found.constants].map(([name, value]) => `${name} = ${value}`)
  return `${found.text.split('(')[0]}(${given.join(', ')})`
}
