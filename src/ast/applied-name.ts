/** `name(1, 2)`; without arguments the name alone: how schedules, formats, instances and features are written. */
export const appliedName = (name: string, args: readonly (string | number | boolean)[]): string =>
  args.length > 0 ? `${name}(${args.join(', ')})` : name
