/**
 * A format with its arguments. A named format lists them behind its name; in a composition written in place, each
 * argument replaces its parameter.
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

/** `name(1, 2)`, or `name` without arguments: the spelling of schedules, formats, instances and features. */
export const appliedName = (name: string, args: readonly (string | number | boolean)[]): string =>
  args.length > 0 ? `${name}(${args.join(', ')})` : name
