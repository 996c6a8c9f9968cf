// Holds the precompiled header that every library under compiler/ shares.
