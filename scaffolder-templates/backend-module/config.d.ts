export interface Config {
  portal: {
    /** Where the portal is, for example https://portal.example.org. */
    baseUrl: string;
    /**
     * A token of the portal with scope `feed`: manage.py token SERVICE --scope feed
     * @visibility secret
     */
    token: string;
    /**
     * Entities that the portal neither has nor says to have removed are kept, since a portal that was restored to an
     * older state looks the same. true: they are dropped. Set it for one start, when they are really gone.
     */
    dropUnknown?: boolean;
  };
}
