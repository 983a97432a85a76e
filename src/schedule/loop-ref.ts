/**
 * A loop: by the user's name (`i`, or `nest.i` where several nests have one), or, from a handle, by its
 * variable.
 */
export type LoopRef = string | { readonly var: string }
