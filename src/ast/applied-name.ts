/**
 * A format with what it is given: arguments behind its name, or, where parts are put together in place, in the places of the text that
 * they are for.
 */
export function appliedFormat(
  name: string,
  params: readonly { readonly name: string }[],
  args: readonly string[],
): string {
  if (/^\w+$/.test(name)) return appliedName(name, args)
  const texts = new Map(args.map((a, k) => [params[k]!.name, a]))
  return name.replace(/[A-Za-z_][\w.]*(?![\w.]|\s*\()/g, (word) => texts.get(word) ?? word)
}

/** `name(1, 2)`; without arguments the name alone: how schedules, formats, instances and features are written. */
export const appliedName = (name: string, args: readonly (string | number | boolean)[]): string =>
  args.length > 0 ? `${name}(${args.join(', ')})` : name
