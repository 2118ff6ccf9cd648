// The source that a target with precompiled headers must have.
